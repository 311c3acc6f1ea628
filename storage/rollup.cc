#include "storage/rollup.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "storage/integer_shape.h"

namespace stepwell {
namespace {

constexpr std::int64_t kExactMax = INT64_C(1) << 53;

// The sum of values that are k / divisor: exact while the integers' sum is a double.
class ScaledSum {
 public:
  explicit ScaledSum(const ScaledColumn& scaled) : scaled_(scaled) {}

  void Add(double value, std::size_t index) {
    plain_ += value;
    if (!scaled_.exists() || !exact_) return;
    exact_ = !__builtin_add_overflow(integer_, scaled_.integers()[index], &integer_) &&
             integer_ >= -kExactMax && integer_ <= kExactMax;
  }
  double Take() const { return scaled_.exists() && exact_ ? scaled_.ValueOf(integer_) : plain_; }

 private:
  const ScaledColumn& scaled_;
  std::int64_t integer_ = 0;
  double plain_ = 0;
  bool exact_ = true;
};

// One bucket of one series, while its samples pass by.
struct BucketSum {
  explicit BucketSum(const ScaledColumn& scaled) : sum(scaled) {}

  std::int64_t count = 0;
  std::int64_t nan_count = 0;
  std::int64_t last_time_us = 0;
  double min = 0;
  double max = 0;
  double last = 0;
  ScaledSum sum;

  void Add(std::int64_t time_us, double value, std::size_t index) {
    const bool is_first = count == nan_count;
    ++count;
    if (std::isnan(value)) {
      ++nan_count;
      return;
    }
    min = is_first ? value : std::min(min, value);
    max = is_first ? value : std::max(max, value);
    last = value;
    last_time_us = time_us;
    sum.Add(value, index);
  }
};

// Of a column with a value at each tick, all of them k / divisor: integers are compared and summed in a
// fraction of the time, give the same back, and there is nothing to tell but the four.
RollupColumn RollUpIntegers(const RollupGrid& grid, const ScaledColumn& scaled) {
  const std::size_t count = grid.buckets.size();
  RollupColumn column;
  for (auto* vector : {&column.mins, &column.maxs, &column.sums, &column.lasts}) {
    vector->resize(count);
  }
  std::size_t tick = 0;
  for (std::size_t bucket = 0; bucket < count; ++bucket) {
    const auto ticks = static_cast<std::size_t>(grid.tick_counts[bucket]);
    const IntegerTotals totals = TotalsOf(scaled.integers().subspan(tick, ticks));
    tick += ticks;
    column.mins[bucket] = scaled.ValueOf(totals.min);
    column.maxs[bucket] = scaled.ValueOf(totals.max);
    column.sums[bucket] = scaled.ValueOf(totals.sum);
    column.lasts[bucket] = scaled.ValueOf(scaled.integers()[tick - 1]);
  }
  STEPWELL_CHECK(tick == scaled.integers().size());
  return column;
}

class ColumnRollup {
 public:
  explicit ColumnRollup(const RollupGrid& grid) : grid_(grid) {
    const std::size_t count = grid.buckets.size();
    column_.presence.assign(count, 0);
    for (auto* vector : {&column_.counts, &column_.nan_counts, &column_.last_lags_us}) {
      vector->reserve(count);
    }
    for (auto* vector : {&column_.mins, &column_.maxs, &column_.sums, &column_.lasts}) {
      vector->reserve(count);
    }
  }

  void Add(std::size_t bucket, const BucketSum& sum) {
    column_.presence[bucket] = 1;
    column_.counts.push_back(sum.count);
    column_.nan_counts.push_back(sum.nan_count);
    column_.mins.push_back(sum.min);
    column_.maxs.push_back(sum.max);
    column_.sums.push_back(sum.sum.Take());
    column_.lasts.push_back(sum.last);
    const bool has_numbers = sum.count > sum.nan_count;
    // Times of one bucket lie within its step of each other.
    column_.last_lags_us.push_back(has_numbers ? grid_.last_times_us[bucket] - sum.last_time_us
                                               : 0);
  }

  RollupColumn Take() {
    ShortenColumn(grid_, column_);
    return std::move(column_);
  }

 private:
  const RollupGrid& grid_;
  RollupColumn column_;
};

}  // namespace

void ShortenColumn(const RollupGrid& grid, RollupColumn& column) {
  const auto all_zero = [](const std::vector<std::int64_t>& vector) {
    return std::all_of(vector.begin(), vector.end(), [](std::int64_t x) { return x == 0; });
  };
  if (column.counts.size() == grid.buckets.size()) column.presence.clear();
  if (column.presence.empty() && column.counts == grid.tick_counts) column.counts.clear();
  if (all_zero(column.nan_counts)) column.nan_counts.clear();
  if (all_zero(column.last_lags_us)) column.last_lags_us.clear();
}

std::int64_t RollupBucketOf(std::int64_t time_us, std::int32_t step_seconds) {
  const std::int64_t step_us = INT64_C(1'000'000) * step_seconds;
  return time_us / step_us - (time_us % step_us < 0 ? 1 : 0);
}

RollupGrid RollUpTicks(std::span<const std::int64_t> times_us,
                       std::span<const std::int32_t> batches, std::int32_t step_seconds) {
  STEPWELL_CHECK(times_us.size() == batches.size());
  RollupGrid grid;
  grid.step_seconds = step_seconds;
  for (std::size_t i = 0; i < times_us.size(); ++i) {
    const std::int64_t bucket = RollupBucketOf(times_us[i], step_seconds);
    if (grid.buckets.empty() || grid.buckets.back() != bucket) {
      grid.buckets.push_back(bucket);
      grid.tick_counts.push_back(0);
      grid.last_times_us.push_back(0);
      grid.first_batches.push_back(-1);
      grid.last_batches.push_back(-1);
    }
    grid.tick_counts.back() += 1;
    grid.last_times_us.back() = times_us[i];
    if (batches[i] < 0) continue;
    std::int64_t& first = grid.first_batches.back();
    first = first < 0 ? batches[i] : std::min<std::int64_t>(first, batches[i]);
    grid.last_batches.back() = std::max<std::int64_t>(grid.last_batches.back(), batches[i]);
  }
  return grid;
}

RollupColumn RollUpColumn(const RollupGrid& grid, std::span<const std::int64_t> times_us,
                          std::span<const double> values, const ScaledColumn& scaled,
                          std::span<const std::uint8_t> presence) {
  if (presence.empty() && scaled.sums_exactly()) return RollUpIntegers(grid, scaled);
  ColumnRollup column(grid);
  std::size_t next_value = 0;
  std::size_t tick = 0;
  for (std::size_t bucket = 0; bucket < grid.buckets.size(); ++bucket) {
    BucketSum sum(scaled);
    const std::size_t end = tick + static_cast<std::size_t>(grid.tick_counts[bucket]);
    for (; tick < end; ++tick) {
      if (!presence.empty() && presence[tick] == 0) continue;
      sum.Add(times_us[tick], values[next_value], next_value);
      ++next_value;
    }
    if (sum.count > 0) column.Add(bucket, sum);
  }
  STEPWELL_CHECK(next_value == values.size());
  return column.Take();
}

}  // namespace stepwell
