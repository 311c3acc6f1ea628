// The columns of rollups and rollup_ticks that hold vectors, in the one order in which COPY writes and
// the reader asks for them. Pure functions.
#pragma once

#include "storage/sql_text.h"

namespace stepwell {

// Columns of a vector of integers: form, width, width2, base, factor, bits, bits2, dictionary.
inline constexpr int kRollupIntegerColumns = 8;
// Of a vector of values: divisor_exponent and raw behind those.
inline constexpr int kRollupValueColumns = 10;

// Of rollup_ticks: buckets, tick counts, last offsets, first and last batches.
inline constexpr int kRollupTickVectors = 5;
SqlText RollupTickVectorList();
// Of rollups: mins, maxs, sums and lasts, which are values; counts, NaN counts and last lags.
inline constexpr int kRollupValueVectors = 4;
inline constexpr int kRollupCountVectors = 3;
SqlText RollupVectorList();

}  // namespace stepwell
