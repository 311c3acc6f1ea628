#include "client/agent/spool_record.h"

#include <algorithm>

#include "base/crc32c.h"
#include "client/agent/byte_buffer.h"

namespace stepwell::agent {
namespace {

// "SWRC": what a reader looks for behind a damaged record.
constexpr std::uint32_t kRecordMagic = 0x43525753;
constexpr std::string_view kRecordMagicText = "SWRC";

std::uint32_t RecordCrc(std::uint32_t payload_bytes, std::uint8_t type, std::string_view payload) {
  std::uint32_t crc = ExtendCrc32c(0, &payload_bytes, sizeof(payload_bytes));
  crc = ExtendCrc32c(crc, &type, sizeof(type));
  return ExtendCrc32c(crc, payload.data(), payload.size());
}

// What a header claims, and the segment has room for.
struct ClaimedRecord {
  RecordView record;
  std::uint32_t crc;
};

std::optional<ClaimedRecord> ReadClaim(std::string_view segment, std::size_t offset) {
  if (offset > segment.size()) return std::nullopt;
  ByteReader reader(segment.substr(offset));
  if (reader.U32() != kRecordMagic) return std::nullopt;
  const std::size_t payload_bytes = reader.U32();
  const std::uint32_t crc = reader.U32();
  const std::uint32_t type = reader.U32();
  if (!reader.ok() || type > 0xff || payload_bytes > kRecordPayloadBytesMax) return std::nullopt;
  const std::string_view payload = reader.Bytes(payload_bytes);
  if (!reader.ok()) return std::nullopt;
  return ClaimedRecord{
      {static_cast<RecordType>(type), payload, offset, offset + kRecordHeaderBytes + payload_bytes},
      crc};
}

bool IsWhole(const ClaimedRecord& claimed) {
  const RecordView& record = claimed.record;
  return RecordCrc(static_cast<std::uint32_t>(record.payload.size()),
                   static_cast<std::uint8_t>(record.type), record.payload) == claimed.crc;
}

}  // namespace

std::string EncodeRecord(RecordType type, std::string_view payload) {
  const auto payload_bytes = static_cast<std::uint32_t>(payload.size());
  const auto type_byte = static_cast<std::uint8_t>(type);
  ByteWriter writer;
  writer.U32(kRecordMagic);
  writer.U32(payload_bytes);
  writer.U32(RecordCrc(payload_bytes, type_byte, payload));
  writer.U32(type_byte);
  writer.Bytes(payload);
  return writer.Take();
}

std::optional<std::size_t> PayloadBytes(std::string_view header) {
  ByteReader reader(header);
  if (reader.U32() != kRecordMagic) return std::nullopt;
  const std::size_t payload_bytes = reader.U32();
  if (!reader.ok() || payload_bytes > kRecordPayloadBytesMax) return std::nullopt;
  return payload_bytes;
}

std::optional<RecordView> ParseRecord(std::string_view segment, std::size_t offset) {
  const std::optional<ClaimedRecord> claimed = ReadClaim(segment, offset);
  if (!claimed || !IsWhole(*claimed)) return std::nullopt;
  return claimed->record;
}

std::optional<RecordView> RecordReader::Next() {
  if (gave_up_) return std::nullopt;
  for (std::size_t at = segment_.find(kRecordMagicText, offset_); at != std::string_view::npos;
       at = segment_.find(kRecordMagicText, at + 1)) {
    const std::optional<ClaimedRecord> claimed = ReadClaim(segment_, at);
    if (!claimed) continue;
    const std::size_t bytes = claimed->record.end - claimed->record.begin;
    if (bytes > checked_bytes_max_ - checked_bytes_) {
      gave_up_ = true;
      return std::nullopt;
    }
    checked_bytes_ += bytes;
    if (!IsWhole(*claimed)) continue;
    whole_bytes_ += bytes;
    offset_ = claimed->record.end;
    return claimed->record;
  }
  offset_ = segment_.size();
  return std::nullopt;
}

std::string SegmentStart::Encode() const {
  ByteWriter bytes;
  bytes.U32(kSpoolFormat);
  bytes.Bytes(writer.ToBytes());
  bytes.U64(next_sequence);
  bytes.U64(acked_sequence);
  return bytes.Take();
}

std::optional<SegmentStart> SegmentStart::Decode(std::string_view payload) {
  ByteReader reader(payload);
  if (reader.U32() != kSpoolFormat) return std::nullopt;
  const std::optional<Uuid> writer = Uuid::FromBytes(reader.Bytes(16));
  SegmentStart start;
  start.next_sequence = reader.U64();
  start.acked_sequence = reader.U64();
  if (!reader.ok() || !writer || start.next_sequence == 0) return std::nullopt;
  if (std::max(start.next_sequence, start.acked_sequence) > kSequenceMax) return std::nullopt;
  start.writer = *writer;
  return start;
}

void SampleSpan::Add(const SampleSpan& other) {
  if (other.sample_count == 0) return;
  if (sample_count == 0) {
    *this = other;
    return;
  }
  sample_count += other.sample_count;
  first_time_us = std::min(first_time_us, other.first_time_us);
  last_time_us = std::max(last_time_us, other.last_time_us);
}

std::string Frame::Encode(const Checkpoint& checkpoint) const {
  ByteWriter writer;
  writer.U64(sequence);
  writer.I64(sealed_time_us);
  writer.U32(crc32c);
  writer.U64(span.sample_count);
  writer.I64(span.first_time_us);
  writer.I64(span.last_time_us);
  writer.U8(group_continues ? 1 : 0);
  writer.Text(checkpoint.Encode());
  writer.Bytes(body);
  return writer.Take();
}

bool Frame::Decode(std::string_view payload, Frame& frame, Checkpoint* checkpoint) {
  ByteReader reader(payload);
  frame.sequence = reader.U64();
  frame.sealed_time_us = reader.I64();
  frame.crc32c = reader.U32();
  frame.span.sample_count = reader.U64();
  frame.span.first_time_us = reader.I64();
  frame.span.last_time_us = reader.I64();
  frame.group_continues = reader.U8() != 0;
  const std::string_view checkpoint_bytes = reader.Text();
  frame.body = std::string(reader.Rest());
  if (!reader.ok() || frame.sequence == 0 || frame.sequence > kSequenceMax) return false;
  if (ChunkCrc32c(frame.sequence, frame.sealed_time_us, frame.body) != frame.crc32c) return false;
  return checkpoint == nullptr || Checkpoint::Decode(checkpoint_bytes, *checkpoint);
}

std::string GapSpan::Encode() const {
  ByteWriter writer;
  writer.U64(first_sequence);
  writer.U64(last_sequence);
  writer.U32(static_cast<std::uint32_t>(cause));
  writer.U64(span.sample_count);
  writer.I64(span.first_time_us);
  writer.I64(span.last_time_us);
  writer.Text(reason);
  return writer.Take();
}

std::optional<GapSpan> GapSpan::Decode(std::string_view payload) {
  ByteReader reader(payload);
  GapSpan gap;
  gap.first_sequence = reader.U64();
  gap.last_sequence = reader.U64();
  const std::uint32_t cause = reader.U32();
  gap.span.sample_count = reader.U64();
  gap.span.first_time_us = reader.I64();
  gap.span.last_time_us = reader.I64();
  gap.reason = std::string(reader.Text());
  if (!reader.ok() || !pb::GapCause_IsValid(static_cast<int>(cause))) return std::nullopt;
  if (gap.first_sequence == 0 || gap.last_sequence < gap.first_sequence ||
      gap.last_sequence > kSequenceMax) {
    return std::nullopt;
  }
  gap.cause = static_cast<pb::GapCause>(cause);
  return gap;
}

std::string AckedMark::Encode() const {
  ByteWriter writer;
  writer.U64(sequence);
  writer.U64(generation);
  return writer.Take();
}

std::optional<AckedMark> AckedMark::Decode(std::string_view payload) {
  ByteReader reader(payload);
  AckedMark mark;
  mark.sequence = reader.U64();
  mark.generation = reader.U64();
  if (!reader.ok() || mark.sequence > kSequenceMax) return std::nullopt;
  return mark;
}

}  // namespace stepwell::agent
