#include "storage/encoded_ticks.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>

#include "storage/presence.h"
#include "storage/stretch.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

// Of ticks first_tick ... first_tick + tick_count of a table.
struct Slice {
  std::size_t first_tick = 0;
  std::size_t tick_count = 0;
};

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

void AddStatistics(std::span<const double> values, EncodedColumn& column) {
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
  column.sample_count = static_cast<std::int32_t>(values.size());
  column.nan_count = nan_count;
  column.min = least;
  column.max = greatest;
  column.sum = sum;
  column.last = last;
}

// Time and batch range of the ticks that have a sample.
void AddRange(const TickTable& table, Slice slice, std::span<const std::uint8_t> presence,
              EncodedColumn& column) {
  const auto first = std::find(presence.begin(), presence.end(), 1) - presence.begin();
  const auto last = presence.rend() - std::find(presence.rbegin(), presence.rend(), 1) - 1;
  column.first_time_us = table.times_us[slice.first_tick + static_cast<std::size_t>(first)];
  column.last_time_us = table.times_us[slice.first_tick + static_cast<std::size_t>(last)];
  BatchRange range;
  for (std::size_t i = 0; i < presence.size(); ++i) {
    if (presence[i] != 0) range.Add(table.batches[slice.first_tick + i]);
  }
  column.first_batch = range.first;
  column.last_batch = range.last;
}

EncodedTicks EncodeTimes(const TickTable& table, Slice slice) {
  const auto times = std::span(table.times_us).subspan(slice.first_tick, slice.tick_count);
  const auto batches = std::span(table.batches).subspan(slice.first_tick, slice.tick_count);
  BatchRange range;
  for (const std::int32_t batch : batches) range.Add(batch);
  EncodedTicks ticks;
  ticks.tick_group = table.tick_group;
  ticks.tick_count = static_cast<std::int32_t>(slice.tick_count);
  ticks.first_time_us = times.front();
  ticks.last_time_us = times.back();
  ticks.first_batch = range.first;
  ticks.last_batch = range.last;
  ticks.times = EncodeIntegers(times);
  ticks.batches = EncodeIntegers(std::vector<std::int64_t>(batches.begin(), batches.end()));
  return ticks;
}

// `values_used` counts the values of `column` that earlier stretches took.
void EncodeColumn(const TickTable& table, const TickColumn& column, Slice slice,
                  std::size_t& values_used, EncodedTicks& ticks) {
  std::span<const std::uint8_t> presence;
  std::size_t count = slice.tick_count;
  if (!column.presence.empty()) {
    presence = std::span(column.presence).subspan(slice.first_tick, slice.tick_count);
    count = static_cast<std::size_t>(std::count(presence.begin(), presence.end(), 1));
  }
  const auto values = std::span(column.values).subspan(values_used, count);
  values_used += count;
  if (count == 0) return;
  EncodedColumn& encoded = ticks.columns.emplace_back();
  encoded.series_no = column.series_no;
  if (count == slice.tick_count) {
    encoded.first_time_us = ticks.first_time_us;
    encoded.last_time_us = ticks.last_time_us;
    encoded.first_batch = ticks.first_batch;
    encoded.last_batch = ticks.last_batch;
  } else {
    AddRange(table, slice, presence, encoded);
    encoded.presence = PackPresence(presence);
  }
  AddStatistics(values, encoded);
  encoded.values = EncodeValues(values);
}

}  // namespace

std::vector<EncodedTicks> EncodeTicks(const TickTable& table) {
  std::vector<EncodedTicks> stretches;
  std::vector<std::size_t> values_used(table.columns.size(), 0);
  Slice slice;
  for (const std::size_t length : CutStretches(table.times_us)) {
    slice.tick_count = length;
    EncodedTicks& ticks = stretches.emplace_back(EncodeTimes(table, slice));
    ticks.columns.reserve(table.columns.size());
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      EncodeColumn(table, table.columns[i], slice, values_used[i], ticks);
    }
    slice.first_tick += length;
  }
  return stretches;
}

}  // namespace stepwell
