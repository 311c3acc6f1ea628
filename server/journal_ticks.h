// JournalTicks: a chunk's ticks as the journal keeps them: what replay makes heads of, in an eighth of
// the bytes that came. Every byte of the journal is copied five times on its way to the disk. Pure
// functions; every double comes back bit for bit.
//
//   AppendJournalTicks(tables, body);          // at the check, once per chunk
//   DecodeJournalTicks(body, decoded);         // after a crash
//
// Form, numbers as varints, z = zigzag: per table: tick group · tick count · first time z · times ·
// first batch z · batches · column count · columns. Times and batches are the differences of
// neighbours: 0 and the one difference that all have (z), or 1 and each of them (z). A column: series_no
// · a byte: width 0 to 8, +16 with presence, +32 raw · presence as bits, the first tick the lowest ·
// then raw: 8 bytes little-endian per value; else divisor exponent z · least integer z · what each
// integer is above that, `width` bytes little-endian. Exponents are those of EncodedVector.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/chunk_decode.h"
#include "storage/value_scale.h"

namespace stepwell {

// Memory for whoever writes entry after entry; what it holds means nothing.
struct JournalScratch {
  std::string body;
  ScaledValues scaled;
};

// REQUIRES: the vectors of each table fit each other, and no table is without ticks.
void AppendJournalTicks(absl::Span<const TickTable> tables, std::string& body,
                        ScaledValues& scaled);
inline void AppendJournalTicks(absl::Span<const TickTable> tables, std::string& body) {
  ScaledValues scaled;
  AppendJournalTicks(tables, body, scaled);
}

// False where the bytes make no sense. Never reads beyond them; gives no more than a chunk may hold.
bool DecodeJournalTicks(absl::string_view body, DecodedChunk& out);

}  // namespace stepwell
