// FoldPace: how long folds wait for each other. Rows are what PostgreSQL charges for (docs/decisions/
// 0006), and a fold writes one for each series that lives: few series are folded often, so that SQL
// sees them soon, and very many seldom, in longer rows. A core; pure.
//
//   next_fold_time_ = begin + NextFoldInterval(options_.interval, folded->row_count);
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace stepwell {

// Up to so many rows a fold comes after the interval that was set: at 10 s, 100 rows a second.
inline constexpr std::int64_t kFoldRowsOften = 1000;
// And never later than so many intervals: at 10 s, 60 s for 6000 series and more.
inline constexpr std::int64_t kFoldIntervalsMax = 6;

// After a fold of everything that wrote `row_count` rows.
absl::Duration NextFoldInterval(absl::Duration interval, std::int64_t row_count);

}  // namespace stepwell
