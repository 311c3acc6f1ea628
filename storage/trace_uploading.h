// TraceUploading: one call that uploads a trace: gathers its bytes into whole parts, has each stored, and holds
// them all against their SHA-256 before the last one is. At most one part is in memory. Stands between
// a call that brings them and TraceStore. Confined to one thread.
//
//   TraceUploading upload(store, epoch);
//   STEPWELL_RETURN_IF_ERROR(upload.Begin(trial, trials, header));
//   while (...) STEPWELL_RETURN_IF_ERROR(upload.Take(offset, bytes));
//   upload.trace().received_bytes    // committed
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/sha256.h"
#include "storage/trace_store.h"

namespace stepwell {

class TraceUploading {
 public:
  // Before so many stored bytes are read again: blocks as long as it likes; an error ends the call.
  using BeforeReading = std::function<absl::Status(std::int64_t byte_count)>;
  // `store` outlives this.
  TraceUploading(TraceStore& store, std::int64_t owner_epoch, BeforeReading before_reading = {})
      : store_(store), owner_epoch_(owner_epoch), before_reading_(std::move(before_reading)) {}

  // As TraceStore::Begin.
  [[nodiscard]] absl::Status Begin(const TrialSelector& trial, const TrialFilter& trials,
                                   const StoredTraceHeader& header);
  // Blocks on the store with each whole part. kOutOfRange for a hole, with the expected offset in the payload
  // "stepwell/metadata/received_bytes"; kInvalidArgument for too much; kDataLoss: not the bytes that were
  // told, the trace is dropped. The first whole part reads what earlier calls stored. REQUIRES: Begin went well.
  [[nodiscard]] absl::Status Take(std::int64_t offset, std::string_view bytes);
  const TraceRecord& trace() const { return trace_; }
  bool is_complete() const { return trace_.state == StoredTraceState::kComplete; }

 private:
  [[nodiscard]] absl::Status CheckOffset(std::int64_t offset, std::size_t byte_count) const;
  // The digest of what was stored by earlier calls.
  [[nodiscard]] absl::Status ReadStored();
  [[nodiscard]] absl::Status StorePart();
  std::int64_t next_offset() const {
    return trace_.received_bytes + static_cast<std::int64_t>(part_.size());
  }

  TraceStore& store_;
  const std::int64_t owner_epoch_;
  const BeforeReading before_reading_;
  TraceRecord trace_ = {};
  Sha256 sha_;
  bool has_read_stored_ = false;
  std::string part_;
};

}  // namespace stepwell
