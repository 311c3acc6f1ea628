// RollupStretches: the rollups of a table of ticks, one of each step per stretch of it. Stands between
// MergePlan and RollupJoin. A core; pure.
#pragma once

#include <array>
#include <vector>

#include "storage/model.h"
#include "storage/rollup.h"
#include "storage/table_walk.h"

namespace stepwell {

// One per step of kRollupSteps.
using StretchRollups = std::array<Rollup, kRollupSteps.size()>;

// Of each stretch of CutStretches, in order. REQUIRES: the times of `table` ascend.
std::vector<StretchRollups> RollUpStretches(const TickTable& table);

// The same piece by piece: a stretch without series, with room for so many, and one of them.
StretchRollups RollUpTimes(const StretchSlice& stretch, std::size_t series_count);
void AddColumn(const StretchSlice& stretch, const ColumnSlice& column, StretchRollups& rollups);

}  // namespace stepwell
