#include "storage/encoded_rollup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/presence.h"
#include "storage/rollup_values.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

std::optional<EncodedVector> EncodeUnlessEmpty(const std::vector<std::int64_t>& integers) {
  if (integers.empty()) return std::nullopt;
  return EncodeIntegers(integers);
}

// Samples that are not NaN, of each bucket in which the series has any.
std::vector<std::int64_t> NumbersOf(const RollupGrid& grid, const RollupColumn& column) {
  std::vector<std::int64_t> numbers = column.counts.empty() ? grid.tick_counts : column.counts;
  for (std::size_t i = 0; i < column.nan_counts.size(); ++i) numbers[i] -= column.nan_counts[i];
  return numbers;
}

// Where a bucket starts, as a difference that always fits: a time lies less than a step behind it.
std::vector<std::int64_t> OffsetsOf(const RollupGrid& grid) {
  const std::int64_t step_us = INT64_C(1'000'000) * grid.step_seconds;
  std::vector<std::int64_t> offsets;
  offsets.reserve(grid.last_times_us.size());
  for (const std::int64_t time_us : grid.last_times_us) {
    const std::int64_t rest = time_us % step_us;
    offsets.push_back(rest < 0 ? rest + step_us : rest);
  }
  return offsets;
}

EncodedRollup EncodeGrid(const RollupGrid& grid) {
  EncodedRollup encoded;
  encoded.step_seconds = grid.step_seconds;
  encoded.bucket_count = static_cast<std::int32_t>(grid.buckets.size());
  encoded.buckets = EncodeIntegers(grid.buckets);
  encoded.tick_counts = EncodeIntegers(grid.tick_counts);
  encoded.last_offsets = EncodeIntegers(OffsetsOf(grid));
  encoded.first_batches = EncodeIntegers(grid.first_batches);
  encoded.last_batches = EncodeIntegers(grid.last_batches);
  return encoded;
}

EncodedRollupColumn EncodeColumn(const RollupGrid& grid, const SeriesRollup& series) {
  const RollupColumn& column = series.column;
  EncodedRollupColumn encoded;
  encoded.series_no = series.series_no;
  encoded.first_time_us = series.first_time_us;
  encoded.last_time_us = series.last_time_us;
  encoded.bucket_count = static_cast<std::int32_t>(column.mins.size());
  encoded.presence = PackPresence(column.presence);
  encoded.counts = EncodeUnlessEmpty(column.counts);
  encoded.nan_counts = EncodeUnlessEmpty(column.nan_counts);
  encoded.last_lags = EncodeUnlessEmpty(column.last_lags_us);
  EncodeRollupValues(column, NumbersOf(grid, column), encoded);
  return encoded;
}

absl::Status Contradiction(const char* what) {
  return absl::DataLossError(absl::StrCat("rollup: ", what));
}

absl::Status DecodeOptional(const std::optional<EncodedVector>& encoded, std::size_t count,
                            std::vector<std::int64_t>& integers) {
  if (!encoded.has_value()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(integers, DecodeIntegers(*encoded, count));
  return absl::OkStatus();
}

// Of the samples of each bucket no more than all are NaN.
absl::Status CheckCounts(const RollupGrid& grid, const RollupColumn& column) {
  const std::vector<std::int64_t>& counts =
      column.counts.empty() ? grid.tick_counts : column.counts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) return Contradiction("a negative count of samples");
  }
  for (std::size_t i = 0; i < column.nan_counts.size(); ++i) {
    if (column.nan_counts[i] < 0 || column.nan_counts[i] > counts[i]) {
      return Contradiction("a count of NaN that is none of the samples'");
    }
  }
  return absl::OkStatus();
}

bool IsBatch(std::int64_t batch) { return batch >= -1 && batch <= INT32_MAX; }

}  // namespace

EncodedRollup EncodeRollup(const RollupPart& part) {
  EncodedRollup encoded = EncodeGrid(*part.grid);
  encoded.first_time_us = part.first_time_us;
  encoded.last_time_us = part.last_time_us;
  encoded.columns.reserve(part.series.size());
  for (const SeriesRollup* series : part.series) {
    encoded.columns.push_back(EncodeColumn(*part.grid, *series));
  }
  return encoded;
}

absl::StatusOr<RollupGrid> DecodeRollupGrid(const EncodedRollup& encoded) {
  if (encoded.bucket_count < 0) return Contradiction("a negative count of buckets");
  if (encoded.step_seconds <= 0) return Contradiction("a step that is not positive");
  const auto count = static_cast<std::size_t>(encoded.bucket_count);
  RollupGrid grid;
  grid.step_seconds = encoded.step_seconds;
  STEPWELL_ASSIGN_OR_RETURN(grid.buckets, DecodeIntegers(encoded.buckets, count));
  STEPWELL_ASSIGN_OR_RETURN(grid.tick_counts, DecodeIntegers(encoded.tick_counts, count));
  STEPWELL_ASSIGN_OR_RETURN(grid.last_times_us, DecodeIntegers(encoded.last_offsets, count));
  STEPWELL_ASSIGN_OR_RETURN(grid.first_batches, DecodeIntegers(encoded.first_batches, count));
  STEPWELL_ASSIGN_OR_RETURN(grid.last_batches, DecodeIntegers(encoded.last_batches, count));
  const std::int64_t step_us = INT64_C(1'000'000) * grid.step_seconds;
  for (std::size_t i = 0; i < count; ++i) {
    // Whoever folds them goes from one to the next.
    if (i > 0 && grid.buckets[i] <= grid.buckets[i - 1]) {
      return Contradiction("buckets that do not ascend");
    }
    std::int64_t start_us = 0;
    if (__builtin_mul_overflow(grid.buckets[i], step_us, &start_us) || grid.last_times_us[i] < 0 ||
        grid.last_times_us[i] >= step_us ||
        __builtin_add_overflow(start_us, grid.last_times_us[i], &grid.last_times_us[i])) {
      return Contradiction("a bucket beyond all times");
    }
    if (grid.tick_counts[i] < 0) return Contradiction("a negative count of ticks");
    if (!IsBatch(grid.first_batches[i]) || !IsBatch(grid.last_batches[i])) {
      return Contradiction("a batch out of range");
    }
  }
  return grid;
}

absl::StatusOr<RollupColumn> DecodeRollupColumn(const EncodedRollupColumn& encoded,
                                                const RollupGrid& grid) {
  RollupColumn column;
  if (encoded.bucket_count < 0) return Contradiction("a negative count of buckets");
  const auto count = static_cast<std::size_t>(encoded.bucket_count);
  column.presence = UnpackPresence(encoded.presence);
  const auto present =
      column.presence.empty() ? grid.buckets.size() : CountPresent(column.presence);
  if (present != count ||
      (!column.presence.empty() && column.presence.size() != grid.buckets.size())) {
    return Contradiction("presence does not match the buckets");
  }
  if (!column.presence.empty() && !encoded.counts.has_value()) {
    return Contradiction("presence without counts");
  }
  STEPWELL_RETURN_IF_ERROR(DecodeOptional(encoded.counts, count, column.counts));
  STEPWELL_RETURN_IF_ERROR(DecodeOptional(encoded.nan_counts, count, column.nan_counts));
  STEPWELL_RETURN_IF_ERROR(DecodeOptional(encoded.last_lags, count, column.last_lags_us));
  STEPWELL_RETURN_IF_ERROR(CheckCounts(grid, column));
  STEPWELL_RETURN_IF_ERROR(DecodeRollupValues(encoded, NumbersOf(grid, column), column));
  return column;
}

}  // namespace stepwell
