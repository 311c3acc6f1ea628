// MergePlan: what a merge makes of recent rows, without SQL: the ticks of one writer, tick group and
// day joined, sorted by time, cut and encoded again, with their rollups. A core; PgMerger reads and copies the rows.
// Pure functions.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "storage/model.h"
#include "storage/rollup_stretches.h"
#include "storage/row_place.h"

namespace stepwell {

// A stretch of joined ticks, and its rollups, which are yet to be joined with others.
struct MergedStretch {
  EncodedTicks ticks;
  StretchRollups rollups;
};

// `ticks` in the order of their folds; `columns` are rows on these ticks, of some of the series.
// The stretches depend on `ticks` alone, so merging the series in slices gives the same ones each
// time. kDataLoss when rows contradict themselves.
absl::StatusOr<std::vector<MergedStretch>> JoinRecent(absl::Span<const RecentTicksRow> ticks,
                                                      absl::Span<const RecentColumnRow> columns);

// The same of a table, whose times ascend. In one walk: a column is scaled once, and is in the cache for its
// rollups.
std::vector<MergedStretch> EncodeMerged(const TickTable& table);

// The rollups of these stretches without series.
absl::StatusOr<std::vector<StretchRollups>> RollUpRecent(absl::Span<const RecentTicksRow> ticks);

// Series that have rows on these ticks, ascending, each once.
std::vector<SeriesNo> SeriesOn(absl::Span<const RecentTicksRow> ticks);

}  // namespace stepwell
