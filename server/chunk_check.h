// ChunkCheck: step 5 of a sample's line, where a chunk loses its `_untrusted`. What is bad in a
// chunk's content is found here and answered with a reason; such a chunk is consumed, never
// retried. Pure functions.
//
//   STEPWELL_RETURN_IF_COMPLAINT(CheckChunkFrame(chunk));        // damaged on the way: send again
//   ChunkContent content = CheckChunkContent(chunk, refs, ...);  // bad content: consumed
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/chunk_decode.h"
#include "server/chunk_scratch.h"
#include "server/complaint.h"
#include "server/ref_table.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"
#include "storage/model.h"

namespace stepwell {

// What is told to the client and to people of what was not stored.
struct Rejected {
  Complaint complaint;
  std::int64_t sample_count = 0;  // 0 = unknown
};

struct ChunkContent {
  DecodedChunk decoded;
  // Losses that the client declared, samples under an absurd clock, samples that were rejected.
  std::vector<Gap> gaps;
  // The chunk as a whole, or the columns whose definitions were refused.
  std::optional<Rejected> rejected;
  bool whole_rejected = false;
};

// Sequence, checksum: a complaint means that the chunk was damaged and is not consumed.
MaybeComplaint CheckChunkFrame(const pb::Chunk& chunk_untrusted);

// Everything in the body.
ChunkContent CheckChunkContent(const pb::Chunk& chunk_untrusted, const RefTable& refs,
                               WriterNo writer_no, ChunkScratch& scratch);
inline ChunkContent CheckChunkContent(const pb::Chunk& chunk_untrusted, const RefTable& refs,
                                      WriterNo writer_no) {
  ChunkScratch scratch;
  return CheckChunkContent(chunk_untrusted, refs, writer_no, scratch);
}

// A range that will never come, as a gap row.
MaybeComplaint CheckGapRange(const pb::GapRange& gap_untrusted, WriterNo writer_no, Gap& out);

}  // namespace stepwell
