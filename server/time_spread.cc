#include "server/time_spread.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/limits.h"
#include "storage/stretch.h"

namespace stepwell {

MaybeComplaint CheckTimeSpread(absl::Span<const TickTable> tables) {
  TimeSpan span;
  for (const TickTable& table : tables) span.Add(table.times_us);
  // Nearly every chunk is of seconds.
  if (span.FitsARow()) return std::nullopt;
  std::map<std::uint32_t, std::vector<std::int64_t>> times_of;
  for (const TickTable& table : tables) {
    std::vector<std::int64_t>& times = times_of[table.tick_group];
    times.insert(times.end(), table.times_us.begin(), table.times_us.end());
  }
  std::int64_t stretch_count = 0;
  for (auto& [tick_group, times] : times_of) {
    std::sort(times.begin(), times.end());
    stretch_count += CountThinStretches(times, kThinStretchTicks);
  }
  const std::int64_t allowed = std::max(
      kChunkThinStretchesMax, kTableThinStretches * static_cast<std::int64_t>(tables.size()));
  if (stretch_count <= allowed) return std::nullopt;
  return Invalid("TIME_SPREAD",
                 absl::StrCat("tables[].time_deltas_us spread ticks over ", stretch_count,
                              " stretches of up to 24 hours with fewer than ", kThinStretchTicks,
                              " ticks each, allowed in a chunk are at most ", allowed));
}

}  // namespace stepwell
