// RollupJoin: rollups of one writer and step as one, so that a row of them covers a stretch of time,
// however many ticks, merges and late samples it took. A core; pure functions.
//
// What holds: the union says of each series and bucket what its parts say together, which is what one
// rollup of all their samples would say. Counts, minima, maxima and lasts are exact; sums of decimals
// that share a divisor are, too, others are added as doubles in the order of the parts.
//
//   const Rollup joined = JoinRollups({narrow, RollupPart::Of(fresh)});
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "storage/rollup.h"

namespace stepwell {

// Some series of a rollup, or all. What it points to outlives it.
struct RollupPart {
  const RollupGrid* grid = nullptr;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::vector<const SeriesRollup*> series;

  static RollupPart Of(const Rollup& rollup);
};

// `parts` in the order in which their samples came: of lasts at one time the later part's counts. Its
// series ascend. The grid is that of all parts' grids, whichever series they have.
// REQUIRES: at least one part; all of one step.
Rollup JoinRollups(std::span<const RollupPart> parts);

}  // namespace stepwell
