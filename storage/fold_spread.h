// FoldSpread: folds whose ticks lie far apart, cut so that no transaction makes more rows than fit into memory, and into
// a statement's time: 20 bytes of a head can be a row of ticks, one of values, and rollups, 2 kB together. A core; FoldLoop
// asks it. Pure functions.
//
//   for (const auto& folds : CutBySpread(std::move(planned), 10'000)) ...
#pragma once

#include <cstdint>
#include <vector>

#include "storage/fold_store.h"

namespace stepwell {

// Rows of ticks and of values that `fold` makes beyond one for each of its tick groups, days and series, for their times
// span more than a row may; 0 = they do not. An estimate from above. O(ticks), O(ticks log ticks) where it is not 0.
std::int64_t SpreadRows(const WriterFold& fold);

// In the order in which they are to be folded: all at once, mostly; else halves of halves (HalveFolds), each of
// `rows_max` spread rows at most, or of one chunk.
std::vector<std::vector<WriterFold>> CutBySpread(std::vector<WriterFold> folds,
                                                 std::int64_t rows_max);

}  // namespace stepwell
