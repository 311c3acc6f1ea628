#include "bench/load/load_stream.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/uuid.h"

namespace stepwell::bench {
namespace {

double MonotonicSeconds() { return absl::ToDoubleSeconds(RealClock::Get().Monotonic()); }

}  // namespace

LoadStream::LoadStream(const std::string& address, const std::string& trial,
                       std::vector<Writer> writers)
    : trial_(trial),
      writers_(std::move(writers)),
      next_sequences_(writers_.size(), 1),
      windows_(writers_.size()) {
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    ids_.push_back(Uuid::Random().ToBytes());
    writer_of_[ids_.back()] = i;
  }
  grpc::ChannelArguments arguments;
  // A connection of its own, as every agent has.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  stub_ = v1::IngestService::NewStub(channel_);
}

LoadStream::~LoadStream() {
  context_.TryCancel();
  if (reader_.joinable()) reader_.join();
}

absl::Status LoadStream::Open() {
  stream_ = stub_->StreamChunks(&context_);
  for (std::size_t i = 0; i < writers_.size(); ++i) STEPWELL_RETURN_IF_ERROR(OpenWriter(i));
  reader_ = std::thread([this] { ReadAcks(); });
  return absl::OkStatus();
}

absl::Status LoadStream::OpenWriter(std::size_t writer) {
  v1::StreamChunksRequest request;
  auto* open = request.mutable_open();
  open->set_writer(ids_[writer]);
  open->set_external_id(trial_);
  open->set_attempt_key("bench");
  const int rank = writers_[writer].rank;
  if (rank < 0) {
    open->set_is_sampler(true);
    open->set_agent_id(absl::StrCat("bench", rank));
    open->set_machine(open->agent_id());
  } else {
    open->set_agent_id("bench");
    open->set_rank(rank);
  }
  open->set_sent_time_us(absl::ToUnixMicros(absl::Now()));
  stream_->Write(request);
  // Directives to the writers before it may come first.
  v1::StreamChunksResponse response;
  do {
    if (!stream_->Read(&response) || response.has_refused()) {
      return absl::InternalError(absl::StrCat("not opened: ", response.ShortDebugString()));
    }
  } while (!response.has_opened());
  {
    absl::MutexLock lock(&mu_);
    windows_[writer].credit_bytes = response.opened().credit_bytes();
  }
  request.Clear();
  auto* definitions = request.mutable_definitions();
  definitions->set_writer(ids_[writer]);
  for (const v1::Definition& definition : writers_[writer].definitions)
    *definitions->add_definitions() = definition;
  stream_->Write(request);
  return absl::OkStatus();
}

absl::Status LoadStream::Send(const SealedBody& body, std::size_t writer) {
  v1::StreamChunksRequest request;
  auto* chunk = request.mutable_chunk();
  const std::uint64_t sequence = next_sequences_[writer]++;
  chunk->set_writer(ids_[writer]);
  chunk->set_body(body.bytes);
  chunk->set_sequence(sequence);
  chunk->set_sealed_time_us(body.sealed_time_us);
  chunk->set_crc32c(ChunkCrc32c(sequence, body.sealed_time_us, chunk->body()));
  const auto bytes = static_cast<std::int64_t>(chunk->body().size());
  {
    absl::MutexLock lock(&mu_);
    const auto room = [this, bytes, writer]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      const Window& window = windows_[writer];
      return ended_ || window.inflight_bytes == 0 ||
             window.inflight_bytes + bytes <= window.credit_bytes;
    };
    if (!mu_.AwaitWithTimeout(absl::Condition(&room), absl::Seconds(60)) || ended_) {
      return absl::DeadlineExceededError("no credit within 60 s, or the stream ended");
    }
    windows_[writer].inflight_bytes += bytes;
    windows_[writer].sent.push_back({MonotonicSeconds(), bytes});
  }
  if (!stream_->Write(request)) return absl::UnavailableError("the stream ended");
  return absl::OkStatus();
}

absl::Status LoadStream::Beat(std::size_t writer) {
  v1::StreamChunksRequest request;
  request.mutable_heartbeat()->set_writer(ids_[writer]);
  request.mutable_heartbeat()->set_sent_time_us(absl::ToUnixMicros(absl::Now()));
  return stream_->Write(request) ? absl::OkStatus() : absl::UnavailableError("the stream ended");
}

void LoadStream::ReadAcks() {
  v1::StreamChunksResponse response;
  while (stream_->Read(&response)) {
    const double now = MonotonicSeconds();
    absl::MutexLock lock(&mu_);
    // A master that turns the load away does nothing worth measuring.
    if (response.has_refused() || response.ack().rejections_size() > 0) {
      refusal_ = response.ShortDebugString();
      break;
    }
    if (!response.has_ack()) continue;
    const auto found = writer_of_.find(response.ack().writer());
    if (found == writer_of_.end()) continue;
    Window& window = windows_[found->second];
    while (window.acked < response.ack().committed_sequence()) {
      Sent& sent = window.sent[window.acked++];
      sent.acked_time = now;
      window.inflight_bytes -= sent.bytes;
      latencies_.push_back(now - sent.time);
    }
    window.credit_bytes = response.ack().credit_bytes();
    window.closed = window.closed || response.ack().closed();
  }
  absl::MutexLock lock(&mu_);
  ended_ = true;
}

bool LoadStream::AllAckedLocked() const {
  return std::all_of(windows_.begin(), windows_.end(),
                     [](const Window& window) { return window.acked == window.sent.size(); });
}

bool LoadStream::AllClosedLocked() const {
  return std::all_of(windows_.begin(), windows_.end(),
                     [](const Window& window) { return window.closed; });
}

absl::Status LoadStream::AwaitAcks() {
  absl::MutexLock lock(&mu_);
  const auto all_acked = [this]()
                             ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ended_ || AllAckedLocked(); };
  if (mu_.AwaitWithTimeout(absl::Condition(&all_acked), absl::Seconds(60)) && AllAckedLocked()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat("chunks were not acked within 60 s; ", refusal_));
}

absl::Status LoadStream::Finish(Ending ending) {
  STEPWELL_RETURN_IF_ERROR(AwaitAcks());
  if (ending == Ending::kLeaveOpen) return absl::OkStatus();
  for (std::size_t i = 0; i < writers_.size(); ++i) {
    v1::StreamChunksRequest request;
    request.mutable_close()->set_writer(ids_[i]);
    request.mutable_close()->set_final_sequence(next_sequences_[i] - 1);
    stream_->Write(request);
  }
  absl::MutexLock lock(&mu_);
  const auto closed = [this]()
                          ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ended_ || AllClosedLocked(); };
  mu_.AwaitWithTimeout(absl::Condition(&closed), absl::Seconds(60));
  return AllClosedLocked() ? absl::OkStatus() : absl::DeadlineExceededError("Close was not acked");
}

std::vector<double> LoadStream::TakeLatencies() {
  absl::MutexLock lock(&mu_);
  return std::exchange(latencies_, {});
}

std::vector<double> LoadStream::AckTimes(std::size_t writer) {
  absl::MutexLock lock(&mu_);
  const Window& window = windows_[writer];
  std::vector<double> times;
  for (std::uint64_t i = 0; i < window.acked; ++i) times.push_back(window.sent[i].acked_time);
  return times;
}

}  // namespace stepwell::bench
