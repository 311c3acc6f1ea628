#include "storage/encoded_rollup.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/presence.h"
#include "storage/rollup_values.h"
#include "storage/stretch.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

// Of ticks first_tick ... first_tick + tick_count of a table.
struct Slice {
  std::size_t first_tick = 0;
  std::size_t tick_count = 0;
};

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

EncodedRollup EncodeGrid(const RollupGrid& grid, std::span<const std::int64_t> times_us) {
  EncodedRollup encoded;
  encoded.step_seconds = grid.step_seconds;
  encoded.bucket_count = static_cast<std::int32_t>(grid.buckets.size());
  encoded.first_time_us = times_us.front();
  encoded.last_time_us = times_us.back();
  encoded.buckets = EncodeIntegers(grid.buckets);
  encoded.tick_counts = EncodeIntegers(grid.tick_counts);
  encoded.last_offsets = EncodeIntegers(OffsetsOf(grid));
  encoded.first_batches = EncodeIntegers(grid.first_batches);
  encoded.last_batches = EncodeIntegers(grid.last_batches);
  return encoded;
}

EncodedRollupColumn EncodeColumn(const RollupGrid& grid, const RollupColumn& column) {
  EncodedRollupColumn encoded;
  encoded.bucket_count = static_cast<std::int32_t>(column.mins.size());
  encoded.presence = PackPresence(column.presence);
  encoded.counts = EncodeUnlessEmpty(column.counts);
  encoded.nan_counts = EncodeUnlessEmpty(column.nan_counts);
  encoded.last_lags = EncodeUnlessEmpty(column.last_lags_us);
  EncodeRollupValues(column, NumbersOf(grid, column), encoded);
  return encoded;
}

using StretchGrids = std::array<RollupGrid, kRollupSteps.size()>;

// `values_used` counts the values of `column` that earlier stretches took.
void AddColumn(const StretchGrids& grids, const TickTable& table, const TickColumn& column,
               Slice slice, std::size_t& values_used, StretchRollups& rollups) {
  const auto times = std::span(table.times_us).subspan(slice.first_tick, slice.tick_count);
  std::span<const std::uint8_t> presence;
  std::size_t count = slice.tick_count;
  std::size_t first = 0;
  std::size_t last = slice.tick_count - 1;
  if (!column.presence.empty()) {
    presence = std::span(column.presence).subspan(slice.first_tick, slice.tick_count);
    count = static_cast<std::size_t>(std::count(presence.begin(), presence.end(), 1));
    if (count == 0) return;
    while (presence[first] == 0) ++first;
    while (presence[last] == 0) --last;
  }
  const auto values = std::span(column.values).subspan(values_used, count);
  values_used += count;
  // Finding a divisor costs most, and is the same for each step.
  const std::optional<ScaledValues> scaled = ScaleValues(values);
  for (std::size_t step = 0; step < grids.size(); ++step) {
    EncodedRollupColumn& encoded = rollups[step].columns.emplace_back(
        EncodeColumn(grids[step], RollUpColumn(grids[step], times, values, scaled, presence)));
    encoded.series_no = column.series_no;
    encoded.first_time_us = times[first];
    encoded.last_time_us = times[last];
  }
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

bool IsBatch(std::int64_t batch) { return batch >= -1 && batch <= INT32_MAX; }

}  // namespace

std::vector<StretchRollups> EncodeRollups(const TickTable& table) {
  std::vector<StretchRollups> stretches;
  std::vector<std::size_t> values_used(table.columns.size(), 0);
  Slice slice;
  for (const std::size_t length : CutStretches(table.times_us)) {
    slice.tick_count = length;
    const auto times = std::span(table.times_us).subspan(slice.first_tick, length);
    const auto batches = std::span(table.batches).subspan(slice.first_tick, length);
    StretchGrids grids;
    StretchRollups& rollups = stretches.emplace_back();
    for (std::size_t step = 0; step < grids.size(); ++step) {
      grids[step] = RollUpTicks(times, batches, kRollupSteps[step]);
      rollups[step] = EncodeGrid(grids[step], times);
      rollups[step].columns.reserve(table.columns.size());
    }
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      AddColumn(grids, table, table.columns[i], slice, values_used[i], rollups);
    }
    slice.first_tick += length;
  }
  return stretches;
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
      column.presence.empty()
          ? grid.buckets.size()
          : static_cast<std::size_t>(std::count(column.presence.begin(), column.presence.end(), 1));
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
  STEPWELL_RETURN_IF_ERROR(DecodeRollupValues(encoded, NumbersOf(grid, column), column));
  return column;
}

}  // namespace stepwell
