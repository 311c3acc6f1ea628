// RollupStretches: the rollups of a table of ticks, one of each step per stretch of it. Stands between
// MergePlan and RollupJoin. A core; pure.
#pragma once

#include <array>
#include <vector>

#include "storage/model.h"
#include "storage/rollup.h"

namespace stepwell {

// One per step of kRollupSteps.
using StretchRollups = std::array<Rollup, kRollupSteps.size()>;

// Of each stretch of CutStretches, in order. REQUIRES: the times of `table` ascend.
std::vector<StretchRollups> RollUpStretches(const TickTable& table);

}  // namespace stepwell
