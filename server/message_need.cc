#include "server/message_need.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "proto/request_bound.h"

namespace stepwell {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Of each kind.
constexpr int kWriterField = 1;
static_assert(pb::Open::kWriterFieldNumber == kWriterField);
static_assert(pb::Definitions::kWriterFieldNumber == kWriterField);
static_assert(pb::Chunk::kWriterFieldNumber == kWriterField);
static_assert(pb::GapRange::kWriterFieldNumber == kWriterField);
static_assert(pb::Heartbeat::kWriterFieldNumber == kWriterField);
static_assert(pb::Close::kWriterFieldNumber == kWriterField);
static_assert(pb::CaptureReport::kWriterFieldNumber == kWriterField);
static_assert(pb::Credential::kWriterFieldNumber == kWriterField);
// A UUID has 16: of what is longer nobody is the writer.
constexpr std::uint32_t kWriterBytesMax = 64;

bool IsDelimited(std::uint32_t tag) {
  return WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
}

bool IsKind(std::uint32_t tag) {
  return IsDelimited(tag) &&
         WireFormatLite::GetTagFieldNumber(tag) >= pb::StreamChunksRequest::kOpenFieldNumber &&
         WireFormatLite::GetTagFieldNumber(tag) <= pb::StreamChunksRequest::kCredentialFieldNumber;
}

// Of a message within, to its end; the last one counts, and none leaves `writer` as it is.
bool ReadWriter(CodedInputStream& in, std::string& writer) {
  std::uint32_t bytes = 0;
  if (!in.ReadVarint32(&bytes)) return false;
  const auto limit = in.PushLimit(static_cast<int>(bytes));
  while (const std::uint32_t tag = in.ReadTag()) {
    if (!IsDelimited(tag) || WireFormatLite::GetTagFieldNumber(tag) != kWriterField) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    std::uint32_t writer_bytes = 0;
    if (!in.ReadVarint32(&writer_bytes)) return false;
    writer.clear();
    const bool is_read = writer_bytes <= kWriterBytesMax
                             ? in.ReadString(&writer, static_cast<int>(writer_bytes))
                             : in.Skip(static_cast<int>(writer_bytes));
    if (!is_read) return false;
  }
  const bool is_whole = in.BytesUntilLimit() == 0;
  in.PopLimit(limit);
  return is_whole;
}

}  // namespace

MessageNeed NeedOf(google::protobuf::io::ZeroCopyInputStream& bytes_untrusted,
                   std::size_t byte_count) {
  MessageNeed need;
  const auto built =
      BuiltBytesOf(*pb::StreamChunksRequest::descriptor(), bytes_untrusted, kDefiningBuiltBytesMax);
  need.may = built.status();
  need.whole_bytes = static_cast<std::int64_t>(byte_count + built.value_or(0));
  return need;
}

MessageHead HeadOf(google::protobuf::io::ZeroCopyInputStream& bytes_untrusted) {
  MessageHead head;
  bool has_others = false;
  CodedInputStream in(&bytes_untrusted);
  while (const std::uint32_t tag = in.ReadTag()) {
    if (!IsKind(tag)) {
      if (!WireFormatLite::SkipField(&in, tag)) break;
      continue;
    }
    const auto kind =
        static_cast<pb::StreamChunksRequest::MessageCase>(WireFormatLite::GetTagFieldNumber(tag));
    // Of one kind they become one.
    if (kind != head.kind) head.writer.clear();
    head.kind = kind;
    has_others = has_others || kind != pb::StreamChunksRequest::kChunk;
    if (!ReadWriter(in, head.writer)) break;
  }
  head.is_chunk = head.kind == pb::StreamChunksRequest::kChunk && !has_others;
  return head;
}

}  // namespace stepwell
