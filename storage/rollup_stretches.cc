#include "storage/rollup_stretches.h"

#include <cstdint>
#include <span>

namespace stepwell {

StretchRollups RollUpTimes(const StretchSlice& stretch, std::size_t series_count) {
  StretchRollups rollups;
  for (std::size_t step = 0; step < rollups.size(); ++step) {
    rollups[step].grid = RollUpTicks(stretch.times_us, stretch.batches, kRollupSteps[step]);
    rollups[step].first_time_us = stretch.times_us.front();
    rollups[step].last_time_us = stretch.times_us.back();
    rollups[step].series.reserve(series_count);
  }
  return rollups;
}

void AddColumn(const StretchSlice& stretch, const ColumnSlice& column, StretchRollups& rollups) {
  std::size_t first = 0;
  std::size_t last = stretch.times_us.size() - 1;
  if (!column.presence.empty()) {
    while (column.presence[first] == 0) ++first;
    while (column.presence[last] == 0) --last;
  }
  for (Rollup& rollup : rollups) {
    rollup.series.push_back({column.series_no, stretch.times_us[first], stretch.times_us[last],
                             RollUpColumn(rollup.grid, stretch.times_us, column.values,
                                          column.scaled, column.presence)});
  }
}

std::vector<StretchRollups> RollUpStretches(const TickTable& table) {
  std::vector<StretchRollups> stretches;
  ColumnRoom room(table);
  WalkTable(
      table,
      [&](const StretchSlice& stretch) { stretches.push_back(RollUpTimes(stretch, room.Next())); },
      [&](const StretchSlice& stretch, const ColumnSlice& column) {
        AddColumn(stretch, column, stretches.back());
      });
  return stretches;
}

}  // namespace stepwell
