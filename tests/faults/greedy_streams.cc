#include "tests/faults/greedy_streams.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "base/crc32c.h"
#include "base/uuid.h"
#include "base/worker.h"
#include "stepwell/v1/ingest.grpc.pb.h"

namespace stepwell::faults {
namespace {

using Call = grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>;

v1::Definition DefinitionOf(std::uint32_t ref, std::size_t bytes) {
  v1::Definition definition;
  definition.set_ref(ref);
  definition.set_tick_group(1);
  definition.set_metric_group("test");
  definition.set_name(ref == 1 ? "value" : absl::StrCat("value_", ref));
  definition.set_kind(v1::SERIES_KIND_GAUGE);
  // As long as a label may be.
  for (std::size_t left = bytes, label = 0; left > 0; ++label) {
    const std::size_t part = std::min<std::size_t>(left, 1000);
    (*definition.mutable_labels())[absl::StrCat("label_", label)] = std::string(part, 'x');
    left -= part;
  }
  return definition;
}

}  // namespace

class GreedyStreams::Stream {
 public:
  Stream(const std::string& address, const Load& load, int rank)
      : address_(address), load_(load), rank_(rank) {
    worker_ = Worker("greedy", [this] { Run(); });
  }
  ~Stream() {
    {
      absl::MutexLock lock(&mu_);
      gives_up_ = true;
      if (context_ != nullptr) context_->TryCancel();
    }
    worker_.Join();
  }

  void LetGo() {
    absl::MutexLock lock(&mu_);
    may_send_ = true;
  }
  bool done() const { return acked() >= load_.chunk_count + 1; }
  std::uint64_t acked() const {
    absl::MutexLock lock(&mu_);
    return acked_;
  }
  int break_count() const {
    absl::MutexLock lock(&mu_);
    return break_count_;
  }
  std::string last_break() const {
    absl::MutexLock lock(&mu_);
    return last_break_;
  }

 private:
  void Run() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
    const auto stub = v1::IngestService::NewStub(
        grpc::CreateCustomChannel(address_, grpc::InsecureChannelCredentials(), arguments));
    while (!done()) {
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      {
        absl::MutexLock lock(&mu_);
        if (gives_up_) return;
        context_ = &context;
      }
      const auto call = stub->StreamChunks(&context);
      Serve(*call);
      context.TryCancel();
      const grpc::Status status = call->Finish();
      absl::MutexLock lock(&mu_);
      context_ = nullptr;
      if (acked_ > load_.chunk_count || gives_up_) return;
      ++break_count_;
      last_break_ = absl::StrCat(status.error_code(), " ", status.error_message());
      // As a client waits before it comes again.
      const auto gives_up = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return gives_up_; };
      mu_.AwaitWithTimeout(absl::Condition(&gives_up), absl::Milliseconds(500));
    }
  }

  void Serve(Call& call) {
    v1::StreamChunksRequest open;
    open.mutable_open()->set_writer(writer_.ToBytes());
    open.mutable_open()->set_external_id(load_.trial);
    open.mutable_open()->set_rank(rank_);
    open.mutable_open()->set_agent_id("greedy");
    if (!call.Write(open)) return;
    v1::StreamChunksResponse answer;
    do {
      if (!call.Read(&answer)) return;
    } while (!answer.has_opened());
    NoteAcked(answer.opened().committed_sequence());
    Worker reader("acks", [&] {
      v1::StreamChunksResponse next;
      while (!done() && call.Read(&next)) {
        if (next.has_ack()) NoteAcked(next.ack().committed_sequence());
      }
    });
    Send(call);
    reader.Join();
  }

  void Send(Call& call) {
    if (!call.Write(Definitions(1, 1))) return;
    for (std::uint64_t i = acked() + 1; i <= load_.chunk_count + 1; ++i) {
      if (i > 1 && !MaySend()) return;
      if (i == 2 && load_.definition_count > 0 &&
          !call.Write(Definitions(2, load_.definition_count))) {
        return;
      }
      if (i == 2 && load_.empty_definition_count > 0 && !call.Write(EmptyDefinitions())) return;
      if (!call.Write(Chunk(i))) return;
    }
  }

  bool MaySend() const {
    absl::MutexLock lock(&mu_);
    const auto may = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return may_send_ || gives_up_; };
    mu_.Await(absl::Condition(&may));
    return !gives_up_;
  }
  void NoteAcked(std::uint64_t sequence) {
    absl::MutexLock lock(&mu_);
    acked_ = std::max(acked_, sequence);
  }

  v1::StreamChunksRequest Definitions(std::uint32_t first_ref, int count) const {
    v1::StreamChunksRequest message;
    message.mutable_definitions()->set_writer(writer_.ToBytes());
    for (int i = 0; i < count; ++i) {
      const std::uint32_t ref = first_ref + static_cast<std::uint32_t>(i);
      *message.mutable_definitions()->add_definitions() =
          DefinitionOf(ref, ref == 1 ? 0 : load_.definition_bytes);
    }
    return message;
  }

  v1::StreamChunksRequest EmptyDefinitions() const {
    v1::StreamChunksRequest message;
    message.mutable_definitions()->set_writer(writer_.ToBytes());
    for (int i = 0; i < load_.empty_definition_count; ++i) {
      message.mutable_definitions()->add_definitions();
    }
    return message;
  }

  v1::StreamChunksRequest Chunk(std::uint64_t sequence) const {
    const std::size_t sample_count = sequence == 1 ? 1 : load_.chunk_samples;
    v1::ChunkBody body;
    v1::Table& table = *body.add_tables();
    table.set_tick_group(1);
    // Of a minute ago on, a second after the other chunk.
    table.set_first_time_us(start_us_ + static_cast<std::int64_t>(sequence) * 1'000'000);
    table.set_first_batch(-1);
    v1::Column& column = *table.add_columns();
    column.set_ref(1);
    for (std::size_t i = 0; i < sample_count; ++i) {
      if (i > 0) table.add_time_deltas_us(10);
      // No two of all streams are alike.
      column.add_doubles(rank_ * 1e9 + static_cast<double>(sequence) * 1e6 +
                         static_cast<double>(i));
    }
    const std::size_t bytes = body.ByteSizeLong();
    if (sequence > 1 && bytes < load_.chunk_bytes) {
      body.GetReflection()->MutableUnknownFields(&body)->AddLengthDelimited(
          1000, std::string(load_.chunk_bytes - bytes, 'p'));
    }
    v1::StreamChunksRequest message;
    v1::Chunk& chunk = *message.mutable_chunk();
    chunk.set_writer(writer_.ToBytes());
    chunk.set_sequence(sequence);
    chunk.set_sealed_time_us(start_us_);
    chunk.set_body(body.SerializeAsString());
    chunk.set_crc32c(ChunkCrc32c(chunk.sequence(), chunk.sealed_time_us(), chunk.body()));
    return message;
  }

  const std::string address_;
  const Load load_;
  const int rank_;
  const Uuid writer_ = Uuid::Random();
  const std::int64_t start_us_ = absl::ToUnixMicros(absl::Now() - absl::Minutes(1));
  mutable absl::Mutex mu_;
  grpc::ClientContext* context_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool may_send_ ABSL_GUARDED_BY(mu_) = false;
  bool gives_up_ ABSL_GUARDED_BY(mu_) = false;
  std::uint64_t acked_ ABSL_GUARDED_BY(mu_) = 0;
  int break_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::string last_break_ ABSL_GUARDED_BY(mu_);
  Worker worker_;
};

GreedyStreams::GreedyStreams(const std::string& address, const Load& load) : load_(load) {
  for (int rank = 0; rank < load.stream_count; ++rank) {
    streams_.push_back(std::make_unique<Stream>(address, load, rank));
  }
}

GreedyStreams::~GreedyStreams() = default;

void GreedyStreams::LetGo() {
  for (const auto& stream : streams_) stream->LetGo();
}

bool GreedyStreams::done() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& each) { return each->done(); });
}

bool GreedyStreams::has_begun() const {
  return std::all_of(streams_.begin(), streams_.end(),
                     [](const auto& each) { return each->acked() > 0; });
}

std::int64_t GreedyStreams::acked_sample_count() const {
  std::int64_t count = 0;
  for (const auto& stream : streams_) {
    const auto acked = static_cast<std::int64_t>(stream->acked());
    if (acked > 0) count += 1 + (acked - 1) * static_cast<std::int64_t>(load_.chunk_samples);
  }
  return count;
}

int GreedyStreams::break_count() const {
  int count = 0;
  for (const auto& stream : streams_) count += stream->break_count();
  return count;
}

std::string GreedyStreams::LastBreak() const {
  for (const auto& stream : streams_) {
    if (stream->break_count() > 0) return stream->last_break();
  }
  return "";
}

}  // namespace stepwell::faults
