// JournalCodec: the payload of one writer in a journal row: an entry per committed sequence range,
// each with all that replay needs. Opaque to storage. Pure functions.
//
//   AppendJournalEntry(entry, tables, payload);   // at the check, once per chunk
//   DecodeJournalPayload(payload, entries);       // after a crash
//
// Form of an entry, numbers as varints: form (2) · first sequence · last − first · attempt · sealed
// time (zigzag) · checksum of the body · 1, or 0 = no body (gap, rejected, close) · body bytes · body, the
// ticks as JournalTicks writes them. Form 1 is read too, for an upgrade that begins with a killed
// master: after the chunk's own checksum table count + 1, 0 = no body · per table: tick group ·
// column count · per column: series_no · divisor · then body bytes · the chunk's body as it came.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/chunk_decode.h"
#include "server/journal_ticks.h"

namespace stepwell {

struct JournalEntry {
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
  std::int32_t attempt = 0;
  std::int64_t sealed_time_us = 0;
  bool has_body = false;

  // The rest is found by decoding alone.
  std::uint32_t crc32c = 0;
  bool is_ticks = true;  // else form 1, with targets
  std::vector<TableTarget> targets = {};
  // Points into what was decoded.
  absl::string_view body = {};
};

// `tables` are the body's, if `entry` has one.
void AppendJournalEntry(const JournalEntry& entry, absl::Span<const TickTable> tables,
                        std::string& payload, JournalScratch& scratch);
inline void AppendJournalEntry(const JournalEntry& entry, absl::Span<const TickTable> tables,
                               std::string& payload) {
  JournalScratch scratch;
  AppendJournalEntry(entry, tables, payload, scratch);
}

// kDataLoss with the offset of what could not be read. Never reads beyond `payload`; memory is
// bounded by its size.
absl::Status DecodeJournalPayload(absl::string_view payload, std::vector<JournalEntry>& out);

// The ticks of an entry with a body. kDataLoss when the body fails its checksum or makes no sense.
absl::Status DecodeJournalBody(const JournalEntry& entry, DecodedChunk& out);

}  // namespace stepwell
