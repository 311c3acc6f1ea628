#include "bench/load/load_stream.h"

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

LoadStream::LoadStream(const std::string& address, const std::string& trial, int rank,
                       std::vector<v1::Definition> definitions)
    : trial_(trial),
      rank_(rank),
      definitions_(std::move(definitions)),
      writer_(Uuid::Random().ToBytes()) {
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
  for (const v1::Definition& definition : definitions_)
    *definitions->add_definitions() = definition;
  stream_->Write(request);
  reader_ = std::thread([this] { ReadAcks(); });
  return absl::OkStatus();
}

absl::Status LoadStream::Send(const SealedBody& body) {
  v1::StreamChunksRequest request;
  auto* chunk = request.mutable_chunk();
  chunk->set_writer(writer_);
  chunk->set_body(body.bytes);
  chunk->set_sequence(next_sequence_);
  chunk->set_sealed_time_us(body.sealed_time_us);
  chunk->set_crc32c(ChunkCrc32c(next_sequence_, body.sealed_time_us, chunk->body()));
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

absl::Status LoadStream::AwaitAcks() {
  absl::MutexLock lock(&mu_);
  const auto all_acked = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return ended_ || acked_ == sent_.size();
  };
  if (mu_.AwaitWithTimeout(absl::Condition(&all_acked), absl::Seconds(60)) &&
      acked_ == sent_.size()) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("acked ", acked_, " of ", sent_.size(), " chunks; ", refusal_));
}

absl::Status LoadStream::Finish(Ending ending) {
  STEPWELL_RETURN_IF_ERROR(AwaitAcks());
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
