#include "storage/cap_removals.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace stepwell {
namespace {

// Lines that wait to be joined; beyond this they are joined at once.
constexpr std::size_t kUnsortedMax = 8 * kRemovalsListedMax;

auto KeyOf(const CapRemoval& removal) {
  return std::tie(removal.trial_id, removal.metric_group, removal.field);
}

bool HasTimes(const CapRemoval& removal) {
  return removal.first_time_us != 0 || removal.last_time_us != 0;
}

void Join(const CapRemoval& from, CapRemoval& into) {
  into.sample_count += from.sample_count;
  into.raw_bytes += from.raw_bytes;
  into.rollup_bytes += from.rollup_bytes;
  into.trace_count += from.trace_count;
  into.trace_bytes += from.trace_bytes;
  if (!HasTimes(from)) return;
  const bool is_first = !HasTimes(into);
  into.first_time_us =
      is_first ? from.first_time_us : std::min(into.first_time_us, from.first_time_us);
  into.last_time_us = is_first ? from.last_time_us : std::max(into.last_time_us, from.last_time_us);
}

}  // namespace

void CapRemovals::Add(const CapRemoval& removal) {
  if (removal.sample_count == 0 && removal.raw_bytes == 0 && removal.rollup_bytes == 0 &&
      removal.trace_count == 0) {
    return;
  }
  sample_count += removal.sample_count;
  raw_bytes += removal.raw_bytes;
  rollup_bytes += removal.rollup_bytes;
  removals.push_back(removal);
  if (removals.size() > kUnsortedMax) Sort();
}

void CapRemovals::Sort() {
  std::stable_sort(removals.begin(), removals.end(),
                   [](const CapRemoval& a, const CapRemoval& b) { return KeyOf(a) < KeyOf(b); });
  std::vector<CapRemoval> joined;
  for (CapRemoval& each : removals) {
    if (!joined.empty() && KeyOf(joined.back()) == KeyOf(each)) {
      Join(each, joined.back());
    } else {
      joined.push_back(std::move(each));
    }
  }
  truncated = truncated || joined.size() > kRemovalsListedMax;
  if (truncated) joined.resize(std::min(joined.size(), kRemovalsListedMax));
  removals = std::move(joined);
}

}  // namespace stepwell
