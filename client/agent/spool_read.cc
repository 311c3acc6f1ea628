// How the sender reads a spool back: Spool::Read and its kin.
#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/byte_buffer.h"
#include "client/agent/spool.h"

namespace stepwell::agent {
namespace {

// More than a window ever has on its way.
constexpr std::uint64_t kSentAheadMax = 1024;

// Type and first eight payload bytes of a record's head: enough to step over it.
struct RecordHead {
  RecordType type;
  std::uint64_t sequence;
  std::size_t end;
};

std::optional<RecordHead> ParseHead(std::string_view head, std::size_t offset) {
  const std::optional<std::size_t> payload_bytes = PayloadBytes(head);
  if (!payload_bytes) return std::nullopt;
  ByteReader reader(head.substr(12));
  const std::uint32_t type = reader.U32();
  return RecordHead{static_cast<RecordType>(type), reader.U64(),
                    offset + kRecordHeaderBytes + *payload_bytes};
}

GapSpan Absent(std::uint64_t first, std::uint64_t last, pb::GapCause cause,
               std::string_view reason) {
  GapSpan gap;
  gap.first_sequence = first;
  gap.last_sequence = last;
  gap.cause = cause;
  gap.reason = std::string(reason);
  return gap;
}

}  // namespace

absl::StatusOr<SpoolItem> Spool::Read(std::uint64_t sequence) {
  SegmentPtr segment;
  Segment view;  // without the file: what the appender may change, as of now
  Cursor cursor;
  {
    absl::MutexLock lock(&mu_);
    if (sequence == 0 || sequence > last_sequence_) {
      return absl::OutOfRangeError(absl::StrCat("spool: no sequence ", sequence));
    }
    std::uint64_t next_held = last_sequence_ + 1;
    if (const GapSpan* gap = GapFromLocked(sequence)) {
      if (sequence >= gap->first_sequence) {
        GapSpan rest = *gap;
        rest.first_sequence = sequence;
        rest.span.sample_count -= std::min(
            rest.span.sample_count,
            CountGivenUpLocked(gap->first_sequence, std::min(sequence - 1, acked_.sequence)));
        return rest;
      }
      next_held = std::min(next_held, gap->first_sequence);
    }
    if (newest_ && newest_->frame.sequence == sequence) {
      cursor_ = newest_->next;
      Frame frame = std::move(newest_->frame);
      newest_.reset();
      return frame;
    }
    for (const SegmentPtr& candidate : segments_) {
      if (candidate->last_sequence < candidate->first_sequence) continue;
      if (sequence > candidate->last_sequence) continue;
      if (sequence >= candidate->first_sequence) segment = candidate;
      next_held = std::min(next_held, candidate->first_sequence);
      break;
    }
    if (segment == nullptr) {
      GapSpan gap =
          sequence <= acked_highest_
              ? Absent(sequence, std::min(next_held - 1, acked_highest_), pb::GAP_CAUSE_RESTORED,
                       "acked once, lost by the master, no longer in the spool")
              : Absent(sequence, next_held - 1, pb::GAP_CAUSE_SPOOL_LOST, "no longer in the spool");
      gap.span = SpanOfFreedLocked(gap.first_sequence, gap.last_sequence);
      return gap;
    }
    view.number = segment->number;
    view.first_sequence = segment->first_sequence;
    view.last_sequence = segment->last_sequence;
    view.bytes = segment->bytes;
    cursor = cursor_;
  }
  std::size_t offset = 0;
  if (cursor.segment == view.number && cursor.sequence <= sequence) offset = cursor.offset;
  while (offset < static_cast<std::size_t>(view.bytes)) {
    STEPWELL_ASSIGN_OR_RETURN(const std::string head,
                              ReadAt(segment->file.get(), offset, kRecordHeaderBytes + 8));
    const auto parsed = ParseHead(head, offset);
    if (!parsed) break;
    if (parsed->type == RecordType::kFrame && parsed->sequence >= sequence) {
      if (parsed->sequence > sequence) break;
      STEPWELL_ASSIGN_OR_RETURN(const std::string bytes,
                                ReadAt(segment->file.get(), offset, parsed->end - offset));
      const auto record = ParseRecord(bytes, 0);
      Frame frame;
      if (!record || !Frame::Decode(record->payload, frame, nullptr)) break;
      absl::MutexLock lock(&mu_);
      cursor_ = {view.number, sequence + 1, parsed->end};
      return frame;
    }
    offset = parsed->end;
  }
  return ReadAround(*segment, view, sequence);
}

// The record of `sequence` is not where it should be: looks through the whole segment.
absl::StatusOr<SpoolItem> Spool::ReadAround(const Segment& segment, const Segment& view,
                                            std::uint64_t sequence) {
  STEPWELL_ASSIGN_OR_RETURN(const std::string bytes,
                            ReadAt(segment.file.get(), 0, static_cast<std::size_t>(view.bytes)));
  std::uint64_t next_held = view.last_sequence + 1;
  RecordReader reader(bytes);
  while (const auto record = reader.Next()) {
    Frame frame;
    if (record->type == RecordType::kFrame && Frame::Decode(record->payload, frame, nullptr) &&
        frame.sequence >= sequence) {
      if (frame.sequence == sequence) return frame;
      next_held = std::min(next_held, frame.sequence);
    }
  }
  GapSpan gap = Absent(sequence, next_held - 1, pb::GAP_CAUSE_SPOOL_CORRUPT,
                       "frames of the spool failed their checksum");
  log::Warning("spool_corrupt", {{"writer", options_.writer.ToText()},
                                 {"first_sequence", gap.first_sequence},
                                 {"last_sequence", gap.last_sequence}});
  absl::MutexLock lock(&mu_);
  AddGapLocked(gap);
  return gap;
}

std::optional<std::uint32_t> Spool::ReadChecksum(std::uint64_t sequence) {
  const absl::StatusOr<SpoolItem> item = Read(sequence);
  if (!item.ok() || !std::holds_alternative<Frame>(*item)) return std::nullopt;
  return std::get<Frame>(*item).crc32c;
}

std::optional<std::uint32_t> Spool::GivenUpChecksum(std::uint64_t sequence) const {
  absl::MutexLock lock(&mu_);
  for (const GivenUp& frame : given_up_) {
    if (frame.sequence == sequence) return frame.crc32c;
  }
  const GapSpan* const gap = GapFromLocked(sequence);
  const bool is_given_up = gap != nullptr && gap->first_sequence <= sequence &&
                           gap->cause == pb::GAP_CAUSE_SPOOL_FULL && sequence > acked_.sequence;
  if (is_given_up) return 0;
  return std::nullopt;
}

SampleSpan Spool::SpanOfUnacked(const Segment& segment, std::uint64_t acked) {
  SampleSpan span;
  std::vector<GivenUp> may_be_sent;
  const absl::StatusOr<std::string> bytes =
      ReadAt(segment.file.get(), 0, static_cast<std::size_t>(segment.bytes));
  if (!bytes.ok()) return span;
  RecordReader reader(*bytes);
  while (const auto record = reader.Next()) {
    Frame frame;
    if (record->type == RecordType::kFrame && Frame::Decode(record->payload, frame, nullptr) &&
        frame.sequence > acked) {
      span.Add(frame.span);
      if (frame.sequence <= acked + kSentAheadMax) {
        may_be_sent.push_back({frame.sequence, frame.span.sample_count, frame.crc32c});
      }
    }
  }
  absl::MutexLock lock(&mu_);
  std::erase_if(given_up_, [acked](const GivenUp& frame) { return frame.sequence <= acked; });
  given_up_.insert(given_up_.end(), may_be_sent.begin(), may_be_sent.end());
  return span;
}

std::uint64_t Spool::CountGivenUpLocked(std::uint64_t first, std::uint64_t last) const {
  std::uint64_t count = 0;
  for (const GivenUp& frame : given_up_) {
    if (frame.sequence >= first && frame.sequence <= last) count += frame.sample_count;
  }
  return count;
}

}  // namespace stepwell::agent
