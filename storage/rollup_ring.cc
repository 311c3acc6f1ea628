#include "storage/rollup_ring.h"

#include "absl/strings/str_cat.h"
#include "storage/pg_row_copy.h"

namespace stepwell {

int RollupSegmentOf(std::int32_t received_day) {
  const int rest = received_day % kRollupSegments;
  return rest < 0 ? rest + kRollupSegments : rest;
}

SqlText RollupSegment(std::string_view table, int segment) {
  return SqlCat({"stepwell.", SqlName(absl::StrCat("recent_", std::string(table), "_", segment))});
}

SqlText RollupTable(std::string_view table, RollupHome home, std::int16_t keep_class,
                    std::int32_t received_day) {
  if (home == RollupHome::kRing) return RollupSegment(table, RollupSegmentOf(received_day));
  return LeafTable(table, keep_class, received_day);
}

}  // namespace stepwell
