// JournalCodec: the payload of one writer in a journal row: an entry per committed sequence range,
// each with all that replay needs beside the chunk's bytes. Opaque to storage. Pure functions.
//
//   AppendJournalEntry(entry, payload);        // at the check, once per chunk
//   DecodeJournalPayload(payload, entries);    // after a crash
//
// Form of an entry, numbers as protobuf varints: form (1) · first sequence · last − first ·
// attempt · sealed time (zigzag) · crc32c · table count + 1, 0 = no body (gap, rejected, close) ·
// per table: tick group · column count · per column: series_no · divisor · then body bytes · body.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/chunk_decode.h"

namespace stepwell {

struct JournalEntry {
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  std::int32_t attempt = 0;
  std::int64_t sealed_time_us = 0;
  std::uint32_t crc32c = 0;
  bool has_body = false;
  std::vector<TableTarget> targets = {};
  // The chunk's bytes as they came. Points into what was decoded or is encoded.
  absl::string_view body = {};
};

void AppendJournalEntry(const JournalEntry& entry, std::string& payload);

// kDataLoss with the offset of what could not be read. Never reads beyond `payload`; memory is
// bounded by its size.
absl::Status DecodeJournalPayload(absl::string_view payload, std::vector<JournalEntry>& out);

// The ticks of an entry with a body. kDataLoss when the body fails its checksum or does not fit its
// targets.
absl::Status DecodeJournalBody(const JournalEntry& entry, DecodedChunk& out);

}  // namespace stepwell
