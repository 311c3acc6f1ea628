#include "server/message_need.h"

#include <google/protobuf/io/zero_copy_stream.h>

#include "proto/request_bound.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"

namespace stepwell {
namespace {

// The tag of a message within: its number and its form.
constexpr unsigned char kChunkTag = (pb::StreamChunksRequest::kChunkFieldNumber << 3) | 2;

bool BeginsWithChunk(google::protobuf::io::ZeroCopyInputStream& bytes) {
  const void* piece = nullptr;
  int piece_bytes = 0;
  bool begins = false;
  while (bytes.Next(&piece, &piece_bytes)) {
    if (piece_bytes == 0) continue;
    begins = *static_cast<const unsigned char*>(piece) == kChunkTag;
    bytes.BackUp(piece_bytes);
    break;
  }
  return begins;
}

}  // namespace

MessageNeed NeedOf(google::protobuf::io::ZeroCopyInputStream& bytes_untrusted,
                   std::size_t byte_count) {
  MessageNeed need;
  need.is_chunk = BeginsWithChunk(bytes_untrusted);
  const auto built =
      BuiltBytesOf(*pb::StreamChunksRequest::descriptor(), bytes_untrusted, kDefiningBuiltBytesMax);
  need.may = built.status();
  const auto whole = static_cast<std::int64_t>(byte_count + built.value_or(0));
  need.bytes = whole * (need.is_chunk ? kChunkNeedFactor : kDefinitionNeedFactor);
  return need;
}

}  // namespace stepwell
