#include "storage/rollup_stretches.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "storage/stretch.h"
#include "storage/value_scale.h"

namespace stepwell {
namespace {

// Ticks first_tick ... first_tick + tick_count of a table.
struct Slice {
  std::size_t first_tick = 0;
  std::size_t tick_count = 0;
};

// `values_used` counts the values of `column` that earlier stretches took.
void AddColumn(const TickTable& table, const TickColumn& column, Slice slice,
               std::size_t& values_used, StretchRollups& rollups) {
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
  for (Rollup& rollup : rollups) {
    rollup.series.push_back({column.series_no, times[first], times[last],
                             RollUpColumn(rollup.grid, times, values, scaled, presence)});
  }
}

}  // namespace

std::vector<StretchRollups> RollUpStretches(const TickTable& table) {
  std::vector<StretchRollups> stretches;
  std::vector<std::size_t> values_used(table.columns.size(), 0);
  Slice slice;
  for (const std::size_t length : CutStretches(table.times_us)) {
    slice.tick_count = length;
    const auto times = std::span(table.times_us).subspan(slice.first_tick, length);
    const auto batches = std::span(table.batches).subspan(slice.first_tick, length);
    StretchRollups& rollups = stretches.emplace_back();
    for (std::size_t step = 0; step < rollups.size(); ++step) {
      rollups[step].grid = RollUpTicks(times, batches, kRollupSteps[step]);
      rollups[step].first_time_us = times.front();
      rollups[step].last_time_us = times.back();
      rollups[step].series.reserve(table.columns.size());
    }
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      AddColumn(table, table.columns[i], slice, values_used[i], rollups);
    }
    slice.first_tick += length;
  }
  return stretches;
}

}  // namespace stepwell
