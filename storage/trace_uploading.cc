#include "storage/trace_uploading.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {

absl::Status TraceUploading::Begin(const TrialSelector& trial, const TrialFilter& trials,
                                   const StoredTraceHeader& header) {
  STEPWELL_ASSIGN_OR_RETURN(trace_, store_.Begin(owner_epoch_, trial, trials, header));
  return absl::OkStatus();
}

absl::Status TraceUploading::CheckOffset(std::int64_t offset, std::size_t byte_count) const {
  const std::int64_t whole = trace_.header.byte_count;
  if (byte_count > static_cast<std::size_t>(kTracePartBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("part.data has ", byte_count, " bytes; allowed: up to ", kTracePartBytes));
  }
  if (offset < 0 || offset > whole || static_cast<std::int64_t>(byte_count) > whole - offset) {
    return absl::InvalidArgumentError(absl::StrCat("part of ", byte_count, " bytes at offset ",
                                                   offset, " of trace ", trace_.trace_no,
                                                   ", which was told to have ", whole, " bytes"));
  }
  if (offset <= next_offset()) return absl::OkStatus();
  absl::Status hole = absl::OutOfRangeError(
      absl::StrCat("part at offset ", offset, " of trace ", trace_.trace_no, "; expected is ",
                   next_offset(), ": what lies before is missing"));
  hole.SetPayload("stepwell/metadata/received_bytes", absl::Cord(absl::StrCat(next_offset())));
  return hole;
}

absl::Status TraceUploading::Take(std::int64_t offset, std::string_view bytes) {
  STEPWELL_RETURN_IF_ERROR(CheckOffset(offset, bytes.size()));
  // What is there already comes again where an answer was lost.
  bytes.remove_prefix(
      std::min<std::size_t>(static_cast<std::size_t>(next_offset() - offset), bytes.size()));
  while (!bytes.empty()) {
    const auto room = static_cast<std::size_t>(
        std::min(kTracePartBytes, trace_.header.byte_count - trace_.received_bytes));
    const std::size_t taken = std::min(bytes.size(), room - part_.size());
    part_.append(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (part_.size() == room) STEPWELL_RETURN_IF_ERROR(StorePart());
  }
  return absl::OkStatus();
}

absl::Status TraceUploading::ReadStored() {
  if (has_read_stored_) return absl::OkStatus();
  for (std::int64_t part_no = 0; part_no * kTracePartBytes < trace_.received_bytes; ++part_no) {
    if (before_reading_) {
      STEPWELL_RETURN_IF_ERROR(before_reading_(
          std::min(kTracePartBytes, trace_.received_bytes - part_no * kTracePartBytes)));
    }
    STEPWELL_ASSIGN_OR_RETURN(const std::string bytes, store_.ReadPart(trace_, part_no));
    sha_.Feed(bytes);
  }
  has_read_stored_ = true;
  return absl::OkStatus();
}

absl::Status TraceUploading::StorePart() {
  STEPWELL_RETURN_IF_ERROR(ReadStored());
  sha_.Feed(part_);
  const bool is_last = next_offset() == trace_.header.byte_count;
  if (is_last && sha_.Finish() != trace_.header.sha256) {
    // Whoever sends it again begins at its first byte.
    const absl::Status dropped = store_.Discard(owner_epoch_, trace_);
    // Another call has it whole by now, or goes on with it: that one's bytes are not ours to drop.
    const bool is_others = absl::IsFailedPrecondition(dropped) || absl::IsNotFound(dropped);
    if (!is_others) STEPWELL_RETURN_IF_ERROR(dropped);
    return absl::DataLossError(absl::StrCat(
        "the bytes of trace '", trace_.header.name,
        "' are not those of the SHA-256 that was told; nothing of it is kept, send it again"));
  }
  STEPWELL_RETURN_IF_ERROR(store_.Append(owner_epoch_, trace_, part_));
  part_.clear();
  return absl::OkStatus();
}

}  // namespace stepwell
