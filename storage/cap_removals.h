// CapRemovals: what caps remove, or would: one line per trial, group and cap, and the sums. A core, for
// previews and sweeps alike. Thread-compatible.
//
//   CapRemovals removals;
//   removals.Add({.trial_id = trial, .metric_group = "gpu", .field = "raw_age_seconds", ...});
//   removals.Sort();
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace stepwell {

// What goes, or went, of one trial for one cap.
struct CapRemoval {
  TrialId trial_id{};
  std::string metric_group = {};  // empty = all groups
  std::string field = {};         // its name, as in CapField
  std::int64_t sample_count = 0;
  std::int64_t raw_bytes = 0;  // samples and ticks, by the ledger
  std::int64_t rollup_bytes = 0;
  // Of the oldest and the newest sample; both 0 where only rollups go.
  std::int64_t first_time_us = 0;
  std::int64_t last_time_us = 0;
  std::int64_t trace_count = 0;
  std::int64_t trace_bytes = 0;

  bool operator==(const CapRemoval&) const = default;
};

inline constexpr std::size_t kRemovalsListedMax = 1000;

struct CapRemovals {
  // Of the same trial, group and field once; the first kRemovalsListedMax after Sort().
  std::vector<CapRemoval> removals = {};
  // Over all of them, listed or not.
  std::int64_t sample_count = 0;
  std::int64_t raw_bytes = 0;
  std::int64_t rollup_bytes = 0;
  bool truncated = false;

  // Nothing where nothing goes.
  void Add(const CapRemoval& removal);
  // By trial, group and field, lines of the same key in one, then cut. What was cut stays in the sums.
  void Sort();
};

}  // namespace stepwell
