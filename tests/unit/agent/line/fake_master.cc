#include "tests/unit/agent/line/fake_master.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/stream_metadata.h"
#include "base/worker.h"

namespace stepwell::agent {

void FakeMaster::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port_), grpc::InsecureServerCredentials(),
                           &port_);
  builder.RegisterService(this);
  if (tells_clock_) builder.RegisterService(&clocks_);
  server_ = builder.BuildAndStart();
}

void FakeMaster::Stop() {
  if (server_ == nullptr) return;
  Resume();
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
  server_ = nullptr;
}

grpc::Status FakeMaster::Clocks::ReadClock(grpc::ServerContext* context,
                                           const pb::ReadClockRequest* /*request*/,
                                           pb::ReadClockResponse* response) {
  const auto& metadata = context->client_metadata();
  const auto shown = metadata.find("authorization");
  response->set_server_time_ns(absl::ToUnixNanos(absl::Now() + master_.clock_ahead_));
  absl::MutexLock lock(&master_.mu_);
  master_.clock_tokens_.push_back(
      shown == metadata.end() ? "" : std::string(shown->second.data(), shown->second.size()));
  const auto is_over = [&] { return context->IsCancelled(); };
  while (master_.holds_clock_ && !is_over()) {
    master_.mu_.AwaitWithTimeout(absl::Condition(&is_over), absl::Milliseconds(10));
  }
  return grpc::Status::OK;
}

std::vector<std::string> FakeMaster::clock_tokens() const {
  absl::MutexLock lock(&mu_);
  return clock_tokens_;
}

void FakeMaster::RefuseTrial(const std::string& external_id) {
  absl::MutexLock lock(&mu_);
  refused_trial_ = external_id;
}

void FakeMaster::SetCredit(std::int64_t bytes) {
  absl::MutexLock lock(&mu_);
  credit_ = bytes;
}

void FakeMaster::SetIncarnation(const std::string& incarnation) {
  absl::MutexLock lock(&mu_);
  incarnation_ = incarnation;
}

void FakeMaster::SwallowChunks(int count) {
  absl::MutexLock lock(&mu_);
  swallow_count_ = count;
}

void FakeMaster::Pause() {
  absl::MutexLock lock(&mu_);
  paused_ = true;
}

void FakeMaster::Resume() {
  absl::MutexLock lock(&mu_);
  paused_ = false;
}

int FakeMaster::stream_count() const {
  absl::MutexLock lock(&mu_);
  return stream_count_;
}

void FakeMaster::RewindAll(std::uint64_t sequence) {
  Change([&](std::map<std::string, Writer>& writers) {
    for (auto& [id, writer] : writers) {
      if (writer.committed <= sequence) continue;
      writer.chunks.erase(writer.chunks.upper_bound(sequence), writer.chunks.end());
      writer.committed = sequence;
      const auto held = writer.chunks.find(sequence);
      writer.committed_crc = held == writer.chunks.end() ? 0 : held->second.crc32c();
      writer.closed = false;
    }
  });
}

void FakeMaster::Change(const std::function<void(std::map<std::string, Writer>&)>& change) {
  absl::MutexLock lock(&mu_);
  change(writers_);
}

std::map<std::string, FakeMaster::Writer> FakeMaster::writers() const {
  absl::MutexLock lock(&mu_);
  return writers_;
}

bool FakeMaster::WaitUntil(
    const std::function<bool(const std::map<std::string, Writer>&)>& holds) const {
  absl::MutexLock lock(&mu_);
  const auto condition = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return holds(writers_); };
  return mu_.AwaitWithTimeout(absl::Condition(&condition), absl::Seconds(60));
}

std::vector<FakeMaster::Sample> FakeMaster::SamplesOf(const Writer& writer) {
  std::vector<Sample> samples;
  for (const auto& [sequence, chunk] : writer.chunks) {
    pb::ChunkBody body;
    if (!body.ParseFromString(chunk.body())) continue;
    for (const pb::Table& table : body.tables()) {
      std::vector<std::int64_t> times = {table.first_time_us()};
      for (const std::int64_t delta : table.time_deltas_us()) times.push_back(times.back() + delta);
      std::vector<std::int32_t> batches(times.size(), table.first_batch());
      for (int i = 0; i < table.batch_deltas_size(); ++i) {
        batches[i + 1] = batches[i] + table.batch_deltas(i);
      }
      for (const pb::Column& column : table.columns()) {
        const auto found = writer.definitions_ever.find(column.ref());
        if (found == writer.definitions_ever.end()) continue;
        const pb::Definition& definition = found->second;
        const double divisor =
            definition.divisor() == 0 ? 1 : static_cast<double>(definition.divisor());
        int next = 0;
        for (std::size_t tick = 0; tick < times.size(); ++tick) {
          if (!column.presence().empty() && !(column.presence()[tick / 8] >> (tick % 8) & 1)) {
            continue;
          }
          const double value = column.integers_size() > 0
                                   ? static_cast<double>(column.integers(next)) / divisor
                                   : column.doubles(next);
          ++next;
          samples.push_back({definition.name(),
                             {definition.labels().begin(), definition.labels().end()},
                             times[tick],
                             batches[tick],
                             value,
                             definition.metric_group()});
        }
      }
    }
  }
  return samples;
}

grpc::Status FakeMaster::StreamChunks(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<pb::StreamChunksResponse, pb::StreamChunksRequest>* stream) {
  {
    absl::MutexLock lock(&mu_);
    context->AddInitialMetadata(kIncarnationMetadata, incarnation_);
    ++stream_count_;
  }
  stream->SendInitialMetadata();
  {
    absl::MutexLock lock(&mu_);
    waiting_[stream] = {};
  }
  bool ended = false;
  Worker talker("fake-talker", [&] { Talk(*stream, ended); });
  pb::StreamChunksRequest request;
  std::set<std::string> places;
  while (stream->Read(&request)) {
    const auto goes_on = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !paused_; };
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(&goes_on));
    if (FindPlace(request, places, waiting_[stream])) Answer(request, waiting_[stream]);
  }
  {
    absl::MutexLock lock(&mu_);
    ended = true;
  }
  talker.Join();
  absl::MutexLock lock(&mu_);
  waiting_.erase(stream);
  return grpc::Status::OK;
}

// What is said unasked goes between the answers.
void FakeMaster::Talk(Stream& stream, const bool& ended) {
  while (true) {
    std::vector<pb::StreamChunksResponse> said;
    {
      absl::MutexLock lock(&mu_);
      const auto due = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
        return ended || !waiting_.at(&stream).empty();
      };
      mu_.Await(absl::Condition(&due));
      said.swap(waiting_.at(&stream));
      if (said.empty()) return;
    }
    if (rewrite_) rewrite_(said);
    for (const pb::StreamChunksResponse& message : said) stream.Write(message);
  }
}

void FakeMaster::DirectAtOpen(Whom whom, const std::string& external_id,
                              std::vector<pb::Directive> directives) {
  absl::MutexLock lock(&mu_);
  directives_[{whom, external_id}] = std::move(directives);
}

void FakeMaster::DirectNow(Whom whom, const std::string& external_id, pb::Directive directive) {
  absl::MutexLock lock(&mu_);
  for (const auto& [id, writer] : writers_) {
    const Whom who = writer.open.is_sampler() ? Whom::kSamplers : Whom::kRanks;
    if (who != whom || writer.open.external_id() != external_id) continue;
    directive.set_writer(id);
    // A client passes over what concerns no writer of its own.
    for (auto& [stream, waiting] : waiting_) {
      *waiting.emplace_back().mutable_directive() = directive;
    }
  }
}

void FakeMaster::Answer(const pb::StreamChunksRequest& request,
                        std::vector<pb::StreamChunksResponse>& out) {
  switch (request.message_case()) {
    case pb::StreamChunksRequest::kOpen:
      return OnOpen(request.open(), out);
    case pb::StreamChunksRequest::kDefinitions:
      for (const pb::Definition& definition : request.definitions().definitions()) {
        Writer& writer = writers_[request.definitions().writer()];
        writer.definitions[definition.ref()] = definition;
        writer.definitions_ever[definition.ref()] = definition;
      }
      return;
    case pb::StreamChunksRequest::kChunk: {
      const pb::Chunk& chunk = request.chunk();
      if (swallow_count_ > 0) {
        --swallow_count_;
        std::uint64_t& swallowed = writers_[chunk.writer()].swallowed;
        swallowed = std::max(swallowed, chunk.sequence());
        return;
      }
      CheckResend(chunk);
      return OnSequenced(
          chunk.writer(), chunk.sequence(), chunk.sequence(),
          [&](Writer& writer) {
            if (ChunkCrc32c(chunk.sequence(), chunk.sealed_time_us(), chunk.body()) !=
                chunk.crc32c()) {
              writer.wrongs.push_back("checksum");
            }
            pb::ChunkBody body;
            if (!body.ParseFromString(chunk.body())) writer.wrongs.push_back("body");
            for (const pb::Table& table : body.tables()) {
              for (const pb::Column& column : table.columns()) {
                if (!writer.definitions.contains(column.ref())) {
                  writer.wrongs.push_back("unknown ref");
                }
              }
            }
            writer.chunks[chunk.sequence()] = chunk;
            writer.committed_crc = chunk.crc32c();
          },
          out);
    }
    case pb::StreamChunksRequest::kGap: {
      const pb::GapRange& gap = request.gap();
      return OnSequenced(
          gap.writer(), gap.first_sequence(), gap.last_sequence(),
          [&](Writer& writer) {
            writer.gaps.push_back(gap);
            writer.committed_crc = 0;
          },
          out);
    }
    case pb::StreamChunksRequest::kHeartbeat:
    case pb::StreamChunksRequest::kCredential:
      return;
    case pb::StreamChunksRequest::kCaptureReport:
      writers_[request.capture_report().writer()].reports.push_back(request.capture_report());
      return;
    case pb::StreamChunksRequest::kClose: {
      Writer& writer = writers_[request.close().writer()];
      const std::uint64_t final_sequence = request.close().final_sequence();
      if (writer.committed != final_sequence) {
        // Behind a message that was lost on the way it is a hole like any other.
        if (writer.committed >= writer.swallowed || final_sequence < writer.committed) {
          writer.wrongs.push_back(
              absl::StrCat("close at ", final_sequence, " with committed ", writer.committed));
        }
        return RefuseHole(request.close().writer(), writer.committed + 1, out);
      }
      writer.closed = true;
      writer.died = request.close().died();
      pb::Ack& ack = *out.emplace_back().mutable_ack();
      ack.set_writer(request.close().writer());
      ack.set_committed_sequence(writer.committed);
      ack.set_credit_bytes(credit_);
      ack.set_closed(true);
      return;
    }
    case pb::StreamChunksRequest::MESSAGE_NOT_SET:
      return;
  }
}

void FakeMaster::CheckResend(const pb::Chunk& chunk) {
  Writer& writer = writers_[chunk.writer()];
  const auto [first, is_first] = writer.chunks_ever.try_emplace(chunk.sequence(), chunk);
  if (is_first) return;
  ++writer.resend_count;
  const pb::Chunk& before = first->second;
  if (before.body() != chunk.body() || before.sealed_time_us() != chunk.sealed_time_us() ||
      before.crc32c() != chunk.crc32c()) {
    writer.wrongs.push_back(absl::StrCat("other bytes under sequence ", chunk.sequence()));
  }
}

bool FakeMaster::FindPlace(const pb::StreamChunksRequest& request, std::set<std::string>& places,
                           std::vector<pb::StreamChunksResponse>& out) {
  if (!request.has_open()) return true;
  std::erase_if(places, [&](const std::string& id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const auto writer = writers_.find(id);
    return writer == writers_.end() || writer->second.closed;  // none of a trial that was refused
  });
  if (places.size() >= kWritersPerStreamMax && !places.contains(request.open().writer())) {
    RefuseOpen(request.open(), "WRITERS_PER_STREAM", out);
    return false;
  }
  places.insert(request.open().writer());
  writers_per_stream_ = std::max(writers_per_stream_, places.size());
  return true;
}

std::size_t FakeMaster::writers_per_stream() const {
  absl::MutexLock lock(&mu_);
  return writers_per_stream_;
}

void FakeMaster::RefuseOpen(const pb::Open& open, const std::string& reason,
                            std::vector<pb::StreamChunksResponse>& out) {
  pb::Refused& refused = *out.emplace_back().mutable_refused();
  refused.set_writer(open.writer());
  refused.set_reason(reason);
  refused.set_message("why");
  refused.set_terminal(true);
}

void FakeMaster::OnOpen(const pb::Open& open, std::vector<pb::StreamChunksResponse>& out) {
  if (!refused_trial_.empty() && open.external_id() == refused_trial_) {
    return RefuseOpen(open, "TRIAL_NOT_FOUND", out);
  }
  Writer& writer = writers_[open.writer()];
  writer.open = open;
  writer.generation = std::max(writer.generation, open.last_generation()) + 1;
  writer.definitions.clear();
  writer.closed = false;
  ++writer.open_count;
  pb::Opened& opened = *out.emplace_back().mutable_opened();
  opened.set_writer(open.writer());
  opened.set_trial_id(1);
  opened.set_writer_no(1);
  opened.set_generation(writer.generation);
  opened.set_committed_sequence(writer.committed);
  opened.set_committed_crc32c(writer.committed_crc);
  opened.set_credit_bytes(credit_);
  opened.set_incarnation(incarnation_);
  const Whom whom = open.is_sampler() ? Whom::kSamplers : Whom::kRanks;
  for (pb::Directive directive : directives_[{whom, open.external_id()}]) {
    directive.set_writer(open.writer());
    *opened.add_directives() = directive;
  }
  opened.set_server_time_us(absl::ToUnixMicros(absl::Now() + clock_ahead_));
}

void FakeMaster::RefuseHole(const std::string& id, std::uint64_t expected,
                            std::vector<pb::StreamChunksResponse>& out) {
  pb::Refused& refused = *out.emplace_back().mutable_refused();
  refused.set_writer(id);
  refused.set_reason("SEQUENCE_HOLE");
  refused.set_expected_sequence(expected);
}

void FakeMaster::OnSequenced(const std::string& id, std::uint64_t first, std::uint64_t last,
                             const std::function<void(Writer&)>& store,
                             std::vector<pb::StreamChunksResponse>& out) {
  Writer& writer = writers_[id];
  if (first > writer.committed + 1) {
    return RefuseHole(id, writer.committed + 1, out);
  }
  if (last <= writer.committed) {
    ++writer.repeat_count;
  } else {
    store(writer);
    writer.committed = last;
  }
  pb::Ack& ack = *out.emplace_back().mutable_ack();
  ack.set_writer(id);
  ack.set_committed_sequence(writer.committed);
  ack.set_credit_bytes(credit_);
}

}  // namespace stepwell::agent
