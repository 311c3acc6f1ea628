#include "storage/fold_plan.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "base/status_macros.h"
#include "storage/tick_join.h"

namespace stepwell {
namespace {

struct DayJoin {
  std::int64_t received_time_us = std::numeric_limits<std::int64_t>::max();
  std::size_t tick_count = 0;
  std::size_t value_count = 0;
  TickJoin join;
};
using DayJoins = std::map<std::pair<std::int32_t, std::uint32_t>, DayJoin>;

// A pass over sizes alone, so that no column is moved as it grows.
DayJoins ExpectAll(const WriterFold& fold) {
  DayJoins joins;
  for (const WriterFold::Part& part : fold.parts) {
    for (const TickTable& table : *part.tables) {
      DayJoin& day = joins[{DayOf(part.received_time_us), table.tick_group}];
      day.tick_count += table.times_us.size();
      for (const TickColumn& column : table.columns) day.value_count += column.values.size();
    }
  }
  for (auto& [key, day] : joins) day.join.Expect(day.tick_count, day.value_count);
  return joins;
}

}  // namespace

std::int32_t DayOf(std::int64_t time_us) {
  constexpr std::int64_t kDayUs = 86'400'000'000;
  const std::int64_t day = time_us / kDayUs - (time_us % kDayUs < 0 ? 1 : 0);
  return static_cast<std::int32_t>(day);
}

absl::StatusOr<std::vector<PlannedTicks>> PlanFold(const WriterFold& fold) {
  DayJoins joins = ExpectAll(fold);
  for (const WriterFold::Part& part : fold.parts) {
    for (const TickTable& table : *part.tables) {
      DayJoin& day = joins[{DayOf(part.received_time_us), table.tick_group}];
      day.received_time_us = std::min(day.received_time_us, part.received_time_us);
      STEPWELL_RETURN_IF_ERROR(day.join.Add(table));
    }
  }
  std::vector<PlannedTicks> plan;
  for (auto& [key, day] : joins) {
    for (EncodedTicks& ticks : EncodeTicks(day.join.Take())) {
      if (ticks.columns.empty()) continue;  // ticks at which nothing was measured
      plan.push_back({.received_day = key.first,
                      .received_time_us = day.received_time_us,
                      .ticks = std::move(ticks)});
    }
  }
  return plan;
}

}  // namespace stepwell
