// EncodedRollup: a rollup as rows: what a row of rollup_ticks and its rows of rollups hold, apart
// from their numbers. Made by merges, copied by pg_rollup_copy. Values; pure
// functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/encoded_vector.h"
#include "storage/model.h"
#include "storage/rollup.h"
#include "storage/rollup_join.h"

namespace stepwell {

// Which vectors of a column are counted from its mins: under the divisor of the mins,
// k = k of min + x, and for sums k = numbers * k of min + x (numbers: samples that are not NaN).
inline constexpr std::int16_t kRelativeMaxs = 1;
inline constexpr std::int16_t kRelativeSums = 2;
inline constexpr std::int16_t kRelativeLasts = 4;

// A row of rollups: RollupColumn, encoded. Absent vectors say what RollupColumn's empty ones say;
// absent maxs, sums and lasts are bit for bit the mins.
struct EncodedRollupColumn {
  SeriesNo series_no{};
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::int32_t bucket_count = 0;  // those with a sample
  std::int16_t relative = 0;
  BitString presence;
  std::optional<EncodedVector> counts;
  std::optional<EncodedVector> nan_counts;
  std::optional<EncodedVector> last_lags;
  EncodedVector mins;
  std::optional<EncodedVector> maxs;
  std::optional<EncodedVector> sums;
  std::optional<EncodedVector> lasts;
};

// A row of rollup_ticks, with the rows that share it.
struct EncodedRollup {
  std::int32_t step_seconds = 0;
  std::int32_t bucket_count = 0;
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  EncodedVector buckets;
  EncodedVector tick_counts;
  EncodedVector last_offsets;  // of last_times_us from the bucket's start, microseconds
  EncodedVector first_batches;
  EncodedVector last_batches;
  std::vector<EncodedRollupColumn> columns;
};

EncodedRollup EncodeRollup(const RollupPart& part);

// kDataLoss where the vectors contradict each other; nothing in them is trusted.
[[nodiscard]] absl::StatusOr<RollupGrid> DecodeRollupGrid(const EncodedRollup& encoded);
[[nodiscard]] absl::StatusOr<RollupColumn> DecodeRollupColumn(const EncodedRollupColumn& encoded,
                                                              const RollupGrid& grid);

}  // namespace stepwell
