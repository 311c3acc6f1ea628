// RollupRing: where rows of rollups are. A row in a leaf is final: nobody joins it with others. Rows that are
// not full yet wait in recent_rollups_0..3, with their grids beside them, where merges take them out again as
// they join them; those of a received day lie in one segment, which is truncated when the day is over and
// its rows are in their leaves. Pure.
#pragma once

#include <cstdint>
#include <string_view>

#include "storage/sql_text.h"

namespace stepwell {

enum class RollupHome { kLeaf, kRing };

inline constexpr int kRollupSegments = 4;

// Of rows that were received on this day (since 1970).
int RollupSegmentOf(std::int32_t received_day);

// stepwell."recent_rollups_2". REQUIRES: `table` is "rollups" or "rollup_ticks", here and below.
SqlText RollupSegment(std::string_view table, int segment);
// The same, or stepwell."rollups_k0_20260101".
SqlText RollupTable(std::string_view table, RollupHome home, std::int16_t keep_class,
                    std::int32_t received_day);

}  // namespace stepwell
