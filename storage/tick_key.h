// TickKey: names a row of ticks, recent_ticks or rollup_ticks. Numbers of ticks are given once in a
// database (PgFolder, PgMerger), so a row never changes under its key; it only goes. A value.
#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include "base/ids.h"

namespace stepwell {

struct TickKey {
  TrialId trial_id{};
  std::int32_t step_seconds = 0;  // 0 = ticks of samples
  bool recent = false;            // merged and recent ones are apart, since a merge makes new ones
  std::int16_t keep_class = 0;
  std::int32_t received_day = 0;
  std::int32_t writer_no = 0;
  std::int64_t tick_no = 0;

  auto operator<=>(const TickKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const TickKey& key) {
    return H::combine(std::move(h), key.trial_id, key.step_seconds, key.recent, key.keep_class,
                      key.received_day, key.writer_no, key.tick_no);
  }
};

}  // namespace stepwell
