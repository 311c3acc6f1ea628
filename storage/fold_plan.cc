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

bool HoldsBulk(const WriterFold& fold) {
  std::map<std::pair<std::int32_t, std::uint32_t>, std::size_t> tick_counts;
  for (const WriterFold::Part& part : fold.parts) {
    for (const TickTable& table : *part.tables) {
      std::size_t& count = tick_counts[{DayOf(part.received_time_us), table.tick_group}];
      count += table.times_us.size();
      if (count >= kBulkTicks) return true;
    }
  }
  return false;
}

absl::StatusOr<FoldPlan> PlanFold(const WriterFold& fold, std::size_t bulk_ticks) {
  DayJoins joins = ExpectAll(fold);
  for (const WriterFold::Part& part : fold.parts) {
    for (const TickTable& table : *part.tables) {
      DayJoin& day = joins[{DayOf(part.received_time_us), table.tick_group}];
      day.received_time_us = std::min(day.received_time_us, part.received_time_us);
      STEPWELL_RETURN_IF_ERROR(day.join.Add(table));
    }
  }
  FoldPlan plan;
  for (auto& [key, day] : joins) {
    const TickTable table = day.join.Take();
    if (table.times_us.size() >= bulk_ticks) {
      BulkStretch bulk = {.received_day = key.first, .stretches = EncodeMerged(table)};
      std::erase_if(bulk.stretches, [](const MergedStretch& each) {
        return each.ticks.columns.empty();  // ticks at which nothing was measured
      });
      if (!bulk.stretches.empty()) plan.bulk.push_back(std::move(bulk));
      continue;
    }
    for (EncodedTicks& ticks : EncodeTicks(table)) {
      if (ticks.columns.empty()) continue;
      plan.recent.push_back({.received_day = key.first,
                             .received_time_us = day.received_time_us,
                             .ticks = std::move(ticks)});
    }
  }
  return plan;
}

}  // namespace stepwell
