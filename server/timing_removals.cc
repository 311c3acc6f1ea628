#include "server/timing_removals.h"

#include <algorithm>

#include "server/limits.h"

namespace stepwell {
namespace {

// From the first sample of an ordinary start until its master has heard of it, and what clocks are apart.
constexpr std::int64_t kApartMaxUs = 600'000'000;

// Of a day on which samples of the attempt came; of its first, samples of others may have gone.
bool HasRemovedSince(std::int32_t first_day, const std::vector<UsageRecord>& usage,
                     const std::string& metric_group) {
  return std::any_of(usage.begin(), usage.end(), [&](const UsageRecord& line) {
    if (line.metric_group != metric_group || line.removed_sample_count == 0) return false;
    return line.received_day > first_day ||
           (line.received_day == first_day && line.sample_count == 0);
  });
}

}  // namespace

bool MayBeOfAttempt(std::int64_t last_time_us, const std::vector<UsageRecord>& usage,
                    const std::string& metric_group, const AttemptBegin& begin) {
  if (last_time_us == 0 || !begin.created_time_us || !begin.first_sample_time_us) return true;
  const std::int64_t began_us = *begin.created_time_us - kApartMaxUs;
  if (last_time_us >= began_us || *begin.first_sample_time_us < began_us) return true;
  const auto created_day = static_cast<std::int32_t>(*begin.created_time_us / kDayUs);
  return HasRemovedSince(created_day, usage, metric_group);
}

}  // namespace stepwell
