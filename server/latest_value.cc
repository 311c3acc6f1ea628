#include "server/latest_value.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace stepwell {
namespace {

LatestValue NewestOf(const TickTable& table, const TickColumn& column, std::uint64_t sequence) {
  LatestValue newest;
  bool any = false;
  std::size_t value = 0;
  for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
    if (!column.presence.empty() && column.presence[tick] == 0) continue;
    if (!any || table.times_us[tick] >= newest.time_us) {
      newest = {table.times_us[tick], sequence, table.batches[tick], column.values[value]};
      any = true;
    }
    ++value;
  }
  return newest;
}

}  // namespace

NewestValues FindNewest(const std::vector<TickTable>& tables, std::uint64_t sequence) {
  NewestValues newest;
  std::size_t column_count = 0;
  for (const TickTable& table : tables) column_count += table.columns.size();
  newest.reserve(column_count);
  for (const TickTable& table : tables) {
    // Most tables are in order of time and have all their samples: then the last tick is newest.
    const bool last_is_newest = std::is_sorted(table.times_us.begin(), table.times_us.end());
    for (const TickColumn& column : table.columns) {
      if (column.values.empty()) continue;
      newest.emplace_back(column.series_no,
                          last_is_newest && column.presence.empty()
                              ? LatestValue{table.times_us.back(), sequence, table.batches.back(),
                                            column.values.back()}
                              : NewestOf(table, column, sequence));
    }
  }
  return newest;
}

LatestValue Newer(const LatestValue& held, const LatestValue& offered) {
  const bool offered_wins =
      std::pair(offered.time_us, offered.sequence) >= std::pair(held.time_us, held.sequence);
  LatestValue newer = offered_wins ? offered : held;
  newer.rows_asked = held.rows_asked || offered.rows_asked;
  return newer;
}

}  // namespace stepwell
