// ChunkDecode: a ChunkBody's tables as ticks in memory. One decoder for what arrives (after the refs
// were looked up) and for what the journal replays, so that both always agree. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/ids.h"
#include "server/complaint.h"
#include "server/wire.h"
#include "stepwell/v1/ingest.pb.h"
#include "storage/model.h"

namespace stepwell {

// What a column of a table is, resolved.
struct ColumnTarget {
  SeriesNo series_no{};  // 0 = dropped
  std::uint64_t divisor = 1;
  bool operator==(const ColumnTarget&) const = default;
};
struct TableTarget {
  std::uint32_t tick_group = 0;
  std::vector<ColumnTarget> columns = {};
  bool operator==(const TableTarget&) const = default;
};

struct DecodedChunk {
  std::vector<TickTable> tables;  // without dropped columns
  std::int64_t sample_count = 0;
  std::int64_t dropped_count = 0;  // samples of dropped columns
  std::int64_t bytes = 0;          // memory of `tables`

  // A column or a table's ticks that `tables` holds now.
  void Count(const TickColumn& column);
  void Count(const TickTable& table);
};

// A power of ten up to 10^15 or of two up to 2^62.
bool IsDivisor(std::uint64_t divisor);

// REQUIRES: targets fit body's tables and columns in number. Complains about lengths that do not
// agree, times outside timestamptz and batches below -1.
MaybeComplaint DecodeChunk(const pb::ChunkBody& body_untrusted,
                           absl::Span<const TableTarget> targets, DecodedChunk& out);

}  // namespace stepwell
