// Records of a spool segment: the bytes on disk and what they mean. Pure; docs/spool.md tells the
// format.
//
//   segment += EncodeRecord(RecordType::kFrame, frame.Encode());
//   RecordReader reader(segment);
//   while (auto record = reader.Next()) ...
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/uuid.h"
#include "client/agent/checkpoint.h"
#include "stepwell/v1/model.pb.h"

namespace stepwell::agent {

namespace pb = ::stepwell::v1;

enum class RecordType : std::uint8_t {
  kSegmentStart = 1,
  kDefinition = 2,
  kFrame = 3,
  kGap = 4,
  kCheckpoint = 5,
  kAcked = 6,
};

inline constexpr std::uint32_t kSpoolFormat = 1;
inline constexpr std::size_t kRecordHeaderBytes = 16;
// A frame's body is at most 1 MiB and its checkpoint a few KiB; what claims more is no record.
inline constexpr std::size_t kRecordPayloadBytesMax = 8 << 20;

// What names a higher sequence is damaged: a frame each microsecond would take 146,000 years, and
// sequences are counted on from what is found.
inline constexpr std::uint64_t kSequenceMax = std::uint64_t{1} << 62;

struct RecordView {
  RecordType type;
  std::string_view payload;
  // Offsets of the record, and behind it.
  std::size_t begin;
  std::size_t end;
};

std::string EncodeRecord(RecordType type, std::string_view payload);
// The record at `offset`, if there is a whole one with the right checksum.
std::optional<RecordView> ParseRecord(std::string_view segment, std::size_t offset);
// Payload bytes that a header claims to follow; nothing where it is no header.
std::optional<std::size_t> PayloadBytes(std::string_view header);

// Steps through the whole records of a segment, over what is none. Whoever wrote it may have put into each 16
// bytes what claims megabytes behind it, and to look at each claim would take hours: where checksums were
// computed of kCheckedTimesMax times the segment's size, or of so much that was none, the rest counts as damaged.
// Keeps a view of the segment.
class RecordReader {
 public:
  static constexpr std::size_t kCheckedTimesMax = 4;

  explicit RecordReader(std::string_view segment, std::size_t false_bytes_max = SIZE_MAX)
      : segment_(segment),
        checked_bytes_max_(segment.size() +
                           std::min(false_bytes_max, (kCheckedTimesMax - 1) * segment.size())) {}

  // Nothing: there is none behind the last one, or it gave up.
  std::optional<RecordView> Next();

  // Checksums were computed of so many, and of so many of what was no record.
  std::size_t checked_bytes() const { return checked_bytes_; }
  std::size_t false_bytes() const { return checked_bytes_ - whole_bytes_; }
  bool gave_up() const { return gave_up_; }

 private:
  std::string_view segment_;
  // There is room for all whole ones in any case.
  std::size_t checked_bytes_max_;
  std::size_t offset_ = 0;
  std::size_t checked_bytes_ = 0;
  std::size_t whole_bytes_ = 0;
  bool gave_up_ = false;
};

struct SegmentStart {
  Uuid writer;
  // Sequence of the next frame; what lies below was given before.
  std::uint64_t next_sequence = 1;
  std::uint64_t acked_sequence = 0;

  std::string Encode() const;
  static std::optional<SegmentStart> Decode(std::string_view payload);
};

// Samples of a frame: how many, and their times.
struct SampleSpan {
  std::uint64_t sample_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;

  void Add(const SampleSpan& other);
};

// A sealed chunk. Its bytes never change.
struct Frame {
  std::uint64_t sequence = 0;
  std::int64_t sealed_time_us = 0;
  std::uint32_t crc32c = 0;
  SampleSpan span;
  // Another frame of the same group follows: a group counts only as a whole, because the checkpoint
  // in its last frame covers all of it.
  bool group_continues = false;
  std::string body;

  std::string Encode(const Checkpoint& checkpoint) const;
  // False where the payload is no frame, or fails the chunk's own checksum.
  static bool Decode(std::string_view payload, Frame& frame, Checkpoint* checkpoint);
};

// Sequences that hold no data.
struct GapSpan {
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  pb::GapCause cause = pb::GAP_CAUSE_UNSPECIFIED;
  SampleSpan span;
  std::string reason;

  std::string Encode() const;
  static std::optional<GapSpan> Decode(std::string_view payload);
};

struct AckedMark {
  std::uint64_t sequence = 0;
  std::uint64_t generation = 0;

  std::string Encode() const;
  static std::optional<AckedMark> Decode(std::string_view payload);
};

}  // namespace stepwell::agent
