#include "storage/encoded_ticks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "storage/presence.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

// Least and greatest of those that are batches at all.
struct BatchRange {
  std::int32_t first = -1;
  std::int32_t last = -1;

  void Add(std::int32_t batch) {
    if (batch < 0) return;
    first = first < 0 ? batch : std::min(first, batch);
    last = std::max(last, batch);
  }
};

// One by one, where no integers tell it.
void AddNumbers(std::span<const double> values, EncodedColumn& column) {
  double least = std::numeric_limits<double>::infinity();
  double greatest = -least;
  double sum = 0;
  double last = 0;
  std::int32_t nan_count = 0;
  for (const double value : values) {
    if (std::isnan(value)) {
      ++nan_count;
      continue;
    }
    least = std::min(least, value);
    greatest = std::max(greatest, value);
    sum += value;
    last = value;
  }
  column.nan_count = nan_count;
  column.min = least;
  column.max = greatest;
  column.sum = sum;
  column.last = last;
}

void AddStatistics(const ColumnSlice& slice, EncodedColumn& column) {
  column.sample_count = static_cast<std::int32_t>(slice.values.size());
  if (!slice.scaled.sums_exactly()) return AddNumbers(slice.values, column);
  const IntegerTotals& totals = slice.scaled.totals();
  column.min = slice.scaled.ValueOf(totals.min);
  column.max = slice.scaled.ValueOf(totals.max);
  column.sum = slice.scaled.ValueOf(totals.sum);
  column.last = slice.values.back();
}

// Time and batch range of the ticks that have a sample.
void AddRange(const StretchSlice& stretch, std::span<const std::uint8_t> presence,
              EncodedColumn& column) {
  const auto first = std::find(presence.begin(), presence.end(), 1) - presence.begin();
  const auto last = presence.rend() - std::find(presence.rbegin(), presence.rend(), 1) - 1;
  column.first_time_us = stretch.times_us[static_cast<std::size_t>(first)];
  column.last_time_us = stretch.times_us[static_cast<std::size_t>(last)];
  BatchRange range;
  for (std::size_t i = 0; i < presence.size(); ++i) {
    if (presence[i] != 0) range.Add(stretch.batches[i]);
  }
  column.first_batch = range.first;
  column.last_batch = range.last;
}

}  // namespace

EncodedTicks EncodeTimes(std::uint32_t tick_group, const StretchSlice& stretch) {
  BatchRange range;
  for (const std::int32_t batch : stretch.batches) range.Add(batch);
  EncodedTicks ticks;
  ticks.tick_group = tick_group;
  ticks.tick_count = static_cast<std::int32_t>(stretch.times_us.size());
  ticks.first_time_us = stretch.times_us.front();
  ticks.last_time_us = stretch.times_us.back();
  ticks.first_batch = range.first;
  ticks.last_batch = range.last;
  ticks.times = EncodeIntegers(stretch.times_us);
  ticks.batches =
      EncodeIntegers(std::vector<std::int64_t>(stretch.batches.begin(), stretch.batches.end()));
  return ticks;
}

void AddColumn(const StretchSlice& stretch, const ColumnSlice& column, EncodedTicks& ticks) {
  EncodedColumn& encoded = ticks.columns.emplace_back();
  encoded.series_no = column.series_no;
  if (column.presence.empty()) {
    encoded.first_time_us = ticks.first_time_us;
    encoded.last_time_us = ticks.last_time_us;
    encoded.first_batch = ticks.first_batch;
    encoded.last_batch = ticks.last_batch;
  } else {
    AddRange(stretch, column.presence, encoded);
    encoded.presence = PackPresence(column.presence);
  }
  AddStatistics(column, encoded);
  encoded.values = EncodeValues(column.values, column.scaled);
}

std::vector<EncodedTicks> EncodeTicks(const TickTable& table) {
  std::vector<EncodedTicks> stretches;
  ColumnRoom room(table);
  WalkTable(
      table,
      [&](const StretchSlice& stretch) {
        stretches.push_back(EncodeTimes(table.tick_group, stretch));
        stretches.back().columns.reserve(room.Next());
      },
      [&](const StretchSlice& stretch, const ColumnSlice& column) {
        AddColumn(stretch, column, stretches.back());
      });
  return stretches;
}

}  // namespace stepwell
