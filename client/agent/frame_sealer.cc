#include "client/agent/frame_sealer.h"

#include "absl/time/time.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace stepwell::agent {

FrameSealer::FrameSealer(std::shared_ptr<Spool> spool, const Clock& clock)
    : spool_(std::move(spool)), clock_(clock) {
  for (const std::string& stored : spool_->definitions()) catalog_.Restore(stored);
}

absl::Status FrameSealer::Seal(const Checkpoint& checkpoint) {
  STEPWELL_CHECK(!pending());
  auto pending = std::make_unique<Pending>();
  pending->definitions = catalog_.TakeNew();
  pending->checkpoint = checkpoint;
  const std::int64_t sealed_time_us = absl::ToUnixMicros(clock_.Now());
  for (ChunkBuilder::Body& body : builder_.Seal()) {
    pending->frames.push_back({sealed_time_us, body.span, std::move(body.bytes)});
  }
  pending_ = std::move(pending);
  return Retry();
}

absl::Status FrameSealer::Retry() {
  while (!pending_->definitions.empty()) {
    STEPWELL_RETURN_IF_ERROR(spool_->AppendDefinition(pending_->definitions.front()));
    pending_->definitions.erase(pending_->definitions.begin());
  }
  if (pending_->frames.empty()) {
    STEPWELL_RETURN_IF_ERROR(spool_->AppendCheckpoint(pending_->checkpoint));
  } else {
    STEPWELL_RETURN_IF_ERROR(spool_->AppendFrames(pending_->frames, pending_->checkpoint));
  }
  written_ = std::move(pending_->checkpoint);
  pending_ = nullptr;
  return absl::OkStatus();
}

}  // namespace stepwell::agent
