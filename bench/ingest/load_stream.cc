#include "bench/ingest/load_stream.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/crc32c.h"
#include "base/uuid.h"

namespace stepwell::bench {
namespace {

double MonotonicSeconds() { return absl::ToDoubleSeconds(RealClock::Get().Monotonic()); }

// xorshift64*: cheap enough to vanish beside the work that is measured.
std::uint64_t NextRandom(std::uint64_t& state) {
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return state * 0x2545F4914F6CDD1DULL;
}

}  // namespace

LoadStream::LoadStream(const std::string& address, const std::string& trial, int rank,
                       ChunkShape shape)
    : shape_(shape),
      trial_(trial),
      rank_(rank),
      writer_(Uuid::Random().ToBytes()),
      next_time_us_(absl::ToUnixMicros(absl::Now())),
      random_(0x9E3779B97F4A7C15ULL + static_cast<std::uint64_t>(rank)),
      last_(static_cast<std::size_t>(shape.series_count), 50.0) {
  grpc::ChannelArguments arguments;
  // A connection of its own, as every agent has.
  arguments.SetInt("stepwell.bench.stream", rank);
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
  v1::StreamChunksRequest request;
  auto* open = request.mutable_open();
  open->set_writer(writer_);
  open->set_external_id(trial_);
  open->set_attempt_key("bench");
  open->set_agent_id("bench");
  open->set_rank(rank_);
  open->set_sent_time_us(absl::ToUnixMicros(absl::Now()));
  stream_->Write(request);
  v1::StreamChunksResponse response;
  if (!stream_->Read(&response) || !response.has_opened()) {
    return absl::InternalError(absl::StrCat("not opened: ", response.ShortDebugString()));
  }
  {
    absl::MutexLock lock(&mu_);
    credit_bytes_ = response.opened().credit_bytes();
  }
  request.Clear();
  auto* definitions = request.mutable_definitions();
  definitions->set_writer(writer_);
  for (int i = 0; i < shape_.series_count; ++i) {
    auto* definition = definitions->add_definitions();
    definition->set_ref(static_cast<std::uint32_t>(i + 1));
    definition->set_tick_group(1);
    definition->set_metric_group("gpu");
    definition->set_name(absl::StrCat("gpu_util_", i));
    definition->set_unit("percent");
    definition->set_kind(v1::SERIES_KIND_GAUGE);
  }
  stream_->Write(request);
  reader_ = std::thread([this] { ReadAcks(); });
  return absl::OkStatus();
}

std::string LoadStream::MakeBody() {
  v1::ChunkBody body;
  auto* table = body.add_tables();
  table->set_tick_group(1);
  table->set_first_time_us(next_time_us_);
  table->set_first_batch(static_cast<std::int32_t>(next_sequence_));
  for (int i = 1; i < shape_.tick_count; ++i) table->add_time_deltas_us(shape_.tick_interval_us);
  next_time_us_ += shape_.tick_interval_us * shape_.tick_count;
  for (int i = 0; i < shape_.series_count; ++i) {
    auto* column = table->add_columns();
    column->set_ref(static_cast<std::uint32_t>(i + 1));
    auto* doubles = column->mutable_doubles();
    doubles->Resize(shape_.tick_count, 0.0);
    // A bounded random walk in tenths of a percent.
    double value = last_[static_cast<std::size_t>(i)];
    for (int tick = 0; tick < shape_.tick_count; ++tick) {
      const auto step = static_cast<double>(NextRandom(random_) % 21) - 10.0;
      value = std::fmin(1000.0, std::fmax(0.0, value + step));
      doubles->Set(tick, value / 10.0);
    }
    last_[static_cast<std::size_t>(i)] = value;
  }
  return body.SerializeAsString();
}

absl::Status LoadStream::Send() {
  v1::StreamChunksRequest request;
  auto* chunk = request.mutable_chunk();
  chunk->set_writer(writer_);
  chunk->set_body(MakeBody());
  chunk->set_sequence(next_sequence_);
  chunk->set_sealed_time_us(next_time_us_);
  chunk->set_crc32c(ChunkCrc32c(next_sequence_, next_time_us_, chunk->body()));
  ++next_sequence_;
  const auto bytes = static_cast<std::int64_t>(chunk->body().size());
  {
    absl::MutexLock lock(&mu_);
    const auto room = [this, bytes]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return ended_ || inflight_bytes_ == 0 || inflight_bytes_ + bytes <= credit_bytes_;
    };
    if (!mu_.AwaitWithTimeout(absl::Condition(&room), absl::Seconds(60)) || ended_) {
      return absl::DeadlineExceededError("no credit within 60 s, or the stream ended");
    }
    inflight_bytes_ += bytes;
    sent_.push_back({MonotonicSeconds(), bytes});
  }
  if (!stream_->Write(request)) return absl::UnavailableError("the stream ended");
  return absl::OkStatus();
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
    while (acked_ < response.ack().committed_sequence()) {
      const Sent& sent = sent_[acked_++];
      inflight_bytes_ -= sent.bytes;
      latencies_.push_back(now - sent.time);
    }
    credit_bytes_ = response.ack().credit_bytes();
    closed_ = closed_ || response.ack().closed();
  }
  absl::MutexLock lock(&mu_);
  ended_ = true;
}

absl::Status LoadStream::Finish(Ending ending) {
  {
    absl::MutexLock lock(&mu_);
    const auto all_acked = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
      return ended_ || acked_ == sent_.size();
    };
    if (!mu_.AwaitWithTimeout(absl::Condition(&all_acked), absl::Seconds(60)) ||
        acked_ != sent_.size()) {
      return absl::DataLossError(
          absl::StrCat("acked ", acked_, " of ", sent_.size(), " chunks; ", refusal_));
    }
  }
  if (ending == Ending::kLeaveOpen) return absl::OkStatus();
  v1::StreamChunksRequest request;
  request.mutable_close()->set_writer(writer_);
  request.mutable_close()->set_final_sequence(next_sequence_ - 1);
  stream_->Write(request);
  absl::MutexLock lock(&mu_);
  const auto closed = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return ended_ || closed_; };
  mu_.AwaitWithTimeout(absl::Condition(&closed), absl::Seconds(60));
  return closed_ ? absl::OkStatus() : absl::DeadlineExceededError("Close was not acked");
}

std::vector<double> LoadStream::TakeLatencies() {
  absl::MutexLock lock(&mu_);
  return std::exchange(latencies_, {});
}

}  // namespace stepwell::bench
