// LatestValue: the newest value of a series, by timestamp, then sequence: what Heads remember of it
// when its chunks are folded. Pure.
//
//   for (const auto& [series_no, value] : FindNewest(chunk.tables, chunk.sequence).values) ...
//   held = Newer(held, value);
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "storage/fold_store.h"
#include "storage/model.h"

namespace stepwell {

struct LatestValue {
  // Of no sample: the rows were asked and have none.
  static constexpr std::int64_t kNoTime = INT64_MIN;

  std::int64_t time_us = 0;
  std::uint64_t sequence = 0;  // 0 = read from a row
  std::int32_t batch = -1;
  double value = 0;
  // The rows were asked, too: none holds a newer one. Otherwise an older master, or an earlier stay
  // of the trial in memory, may have seen a newer time.
  bool rows_asked = false;

  bool has_sample() const { return time_us != kNoTime; }
};

using NewestValues = std::vector<std::pair<SeriesNo, LatestValue>>;
// The newest value of each series in `tables`. O(samples) where times are out of order, else
// O(columns): for outside of a lock.
NewestValues FindNewest(const std::vector<TickTable>& tables, std::uint64_t sequence);

// `held` or `offered`, whichever is newer; the later offer where they are equal. Rows asked for
// either are asked for both.
LatestValue Newer(const LatestValue& held, const LatestValue& offered);

// What one entry of the map costs with its node.
inline constexpr std::int64_t kLatestValueBytes =
    static_cast<std::int64_t>(sizeof(std::pair<const SeriesNo, LatestValue>)) + 48;

}  // namespace stepwell
