#include "storage/rollup_join.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "base/check.h"
#include "storage/value_scale.h"

namespace stepwell {
namespace {

constexpr std::int64_t kExactMax = INT64_C(1) << 53;

// Rows of a database may say anything: a count stays at the end of its range.
std::int64_t Plus(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(left, right, &sum)) return sum;
  return left < 0 ? std::numeric_limits<std::int64_t>::min()
                  : std::numeric_limits<std::int64_t>::max();
}

std::int64_t Minus(std::int64_t left, std::int64_t right) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(left) -
                                   static_cast<std::uint64_t>(right));
}

RollupGrid JoinGrids(std::span<const RollupPart> parts) {
  RollupGrid joined;
  joined.step_seconds = parts.front().grid->step_seconds;
  for (const RollupPart& part : parts) {
    STEPWELL_CHECK(part.grid->step_seconds == joined.step_seconds);
    joined.buckets.insert(joined.buckets.end(), part.grid->buckets.begin(),
                          part.grid->buckets.end());
  }
  std::sort(joined.buckets.begin(), joined.buckets.end());
  joined.buckets.erase(std::unique(joined.buckets.begin(), joined.buckets.end()),
                       joined.buckets.end());
  const std::size_t count = joined.buckets.size();
  joined.tick_counts.assign(count, 0);
  joined.last_times_us.assign(count, std::numeric_limits<std::int64_t>::min());
  joined.first_batches.assign(count, -1);
  joined.last_batches.assign(count, -1);
  return joined;
}

// Where each bucket of `grid` is in `joined`. Rows of a database may have them in any order.
std::vector<std::size_t> PlacesIn(const RollupGrid& joined, const RollupGrid& grid) {
  std::vector<std::size_t> places;
  places.reserve(grid.buckets.size());
  for (const std::int64_t bucket : grid.buckets) {
    const auto found = std::lower_bound(joined.buckets.begin(), joined.buckets.end(), bucket);
    places.push_back(static_cast<std::size_t>(found - joined.buckets.begin()));
  }
  return places;
}

void AddGrid(const RollupGrid& grid, const std::vector<std::size_t>& places, RollupGrid& joined) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t at = places[i];
    joined.tick_counts[at] = Plus(joined.tick_counts[at], grid.tick_counts[i]);
    joined.last_times_us[at] = std::max(joined.last_times_us[at], grid.last_times_us[i]);
    joined.last_batches[at] = std::max(joined.last_batches[at], grid.last_batches[i]);
    const std::int64_t first = grid.first_batches[i];
    std::int64_t& least = joined.first_batches[at];
    if (first >= 0) least = least < 0 ? first : std::min(least, first);
  }
}

// One bucket of one series, from its parts.
struct JoinedBucket {
  std::int64_t count = 0;
  std::int64_t nan_count = 0;
  std::int64_t last_time_us = 0;
  double min = 0;
  double max = 0;
  double sum = 0;
  double last = 0;
  int part_count = 0;
  int summand_count = 0;
};

// The sums of the parts that a bucket shares with others, in their order.
struct Summands {
  std::vector<std::size_t> places;
  std::vector<double> sums;
};

class ColumnJoin {
 public:
  explicit ColumnJoin(const RollupGrid& joined)
      : joined_(joined), buckets_(joined.buckets.size()) {}

  void Add(const RollupGrid& grid, const std::vector<std::size_t>& places,
           const RollupColumn& column) {
    std::size_t own = 0;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (!column.presence.empty() && column.presence[i] == 0) continue;
      const std::int64_t lag = column.last_lags_us.empty() ? 0 : column.last_lags_us[own];
      const JoinedBucket part = {
          .count = column.counts.empty() ? grid.tick_counts[i] : column.counts[own],
          .nan_count = column.nan_counts.empty() ? 0 : column.nan_counts[own],
          .last_time_us = Minus(grid.last_times_us[i], lag),
          .min = column.mins[own],
          .max = column.maxs[own],
          .sum = column.sums[own],
          .last = column.lasts[own]};
      AddBucket(places[i], part);
      ++own;
    }
  }

  RollupColumn Take() {
    AddSumsExactly();
    RollupColumn column;
    column.presence.assign(buckets_.size(), 0);
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      const JoinedBucket& bucket = buckets_[i];
      if (bucket.part_count == 0) continue;
      column.presence[i] = 1;
      column.counts.push_back(bucket.count);
      column.nan_counts.push_back(bucket.nan_count);
      column.mins.push_back(bucket.min);
      column.maxs.push_back(bucket.max);
      column.sums.push_back(bucket.sum);
      column.lasts.push_back(bucket.last);
      column.last_lags_us.push_back(
          bucket.summand_count > 0 ? Minus(joined_.last_times_us[i], bucket.last_time_us) : 0);
    }
    ShortenColumn(joined_, column);
    return column;
  }

 private:
  void AddBucket(std::size_t place, const JoinedBucket& part) {
    JoinedBucket& bucket = buckets_[place];
    ++bucket.part_count;
    bucket.count = Plus(bucket.count, part.count);
    bucket.nan_count = Plus(bucket.nan_count, part.nan_count);
    if (part.count <= part.nan_count) return;  // no number
    const bool is_first = bucket.summand_count == 0;
    ++bucket.summand_count;
    bucket.min = is_first ? part.min : std::min(bucket.min, part.min);
    bucket.max = is_first ? part.max : std::max(bucket.max, part.max);
    bucket.sum = is_first ? part.sum : bucket.sum + part.sum;
    summands_.places.push_back(place);
    summands_.sums.push_back(part.sum);
    if (!is_first && part.last_time_us < bucket.last_time_us) return;
    bucket.last = part.last;
    bucket.last_time_us = part.last_time_us;
  }

  // Sums of several parts again, as integers under a common divisor where there is one.
  void AddSumsExactly() {
    Summands shared;
    for (std::size_t i = 0; i < summands_.sums.size(); ++i) {
      if (buckets_[summands_.places[i]].summand_count < 2) continue;
      shared.places.push_back(summands_.places[i]);
      shared.sums.push_back(summands_.sums[i]);
    }
    if (shared.sums.empty()) return;
    const std::optional<ScaledValues> scaled = ScaleValues(shared.sums);
    if (!scaled.has_value()) return;
    std::map<std::size_t, std::int64_t> totals;
    std::map<std::size_t, bool> overflows;
    for (std::size_t i = 0; i < shared.sums.size(); ++i) {
      std::int64_t& total = totals[shared.places[i]];
      overflows[shared.places[i]] |= __builtin_add_overflow(total, scaled->integers[i], &total) ||
                                     total < -kExactMax || total > kExactMax;
    }
    for (const auto& [place, total] : totals) {
      if (overflows[place]) continue;
      buckets_[place].sum = static_cast<double>(total) / Divisor(scaled->divisor_exponent);
    }
  }

  const RollupGrid& joined_;
  std::vector<JoinedBucket> buckets_;
  Summands summands_;
};

// Parts that have the series, by their index.
using PartsOfSeries = std::map<SeriesNo, std::vector<std::pair<std::size_t, const SeriesRollup*>>>;

PartsOfSeries BySeries(std::span<const RollupPart> parts) {
  PartsOfSeries by_series;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (const SeriesRollup* series : parts[i].series) {
      by_series[series->series_no].emplace_back(i, series);
    }
  }
  return by_series;
}

}  // namespace

RollupPart RollupPart::Of(const Rollup& rollup) {
  RollupPart part = {.grid = &rollup.grid,
                     .first_time_us = rollup.first_time_us,
                     .last_time_us = rollup.last_time_us,
                     .series = {}};
  for (const SeriesRollup& series : rollup.series) part.series.push_back(&series);
  return part;
}

Rollup JoinRollups(std::span<const RollupPart> parts) {
  STEPWELL_CHECK(!parts.empty());
  Rollup joined;
  joined.grid = JoinGrids(parts);
  joined.first_time_us = parts.front().first_time_us;
  joined.last_time_us = parts.front().last_time_us;
  std::vector<std::vector<std::size_t>> places;
  for (const RollupPart& part : parts) {
    places.push_back(PlacesIn(joined.grid, *part.grid));
    AddGrid(*part.grid, places.back(), joined.grid);
    joined.first_time_us = std::min(joined.first_time_us, part.first_time_us);
    joined.last_time_us = std::max(joined.last_time_us, part.last_time_us);
  }
  for (const auto& [series_no, own] : BySeries(parts)) {
    ColumnJoin column(joined.grid);
    SeriesRollup& series = joined.series.emplace_back();
    series = {series_no, own.front().second->first_time_us, own.front().second->last_time_us, {}};
    for (const auto& [index, part] : own) {
      column.Add(*parts[index].grid, places[index], part->column);
      series.first_time_us = std::min(series.first_time_us, part->first_time_us);
      series.last_time_us = std::max(series.last_time_us, part->last_time_us);
    }
    series.column = column.Take();
  }
  return joined;
}

}  // namespace stepwell
