#include "server/profiling_check.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/limits.h"
#include "server/query_wire.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

// As SensorSelection of the agent holds them.
constexpr std::int64_t kIntervalUsMin = 10'000;
constexpr std::int64_t kIntervalUsMax = 3'600'000'000;
constexpr int kGroupsMax = 32;

MaybeComplaint CheckInterval(std::int64_t interval_us) {
  if (interval_us == 0) return std::nullopt;
  if (interval_us >= kIntervalUsMin && interval_us <= kIntervalUsMax) return std::nullopt;
  return Invalid("INTERVAL_RANGE", absl::StrCat("interval_us is ", interval_us,
                                                "; allowed: 0 (what the trial chose), ",
                                                kIntervalUsMin, " ... ", kIntervalUsMax));
}

}  // namespace

MaybeComplaint CheckSetProfiling(const pb::SetProfilingRequest& request_untrusted,
                                 TrialSelector& trial, TrialProfiling& wanted) {
  const pb::SetProfilingRequest& request = request_untrusted;
  auto selector = CheckTrialRef(request.trial());
  if (!selector.ok()) return Invalid("TRIAL_REF", std::string(selector.status().message()));
  STEPWELL_RETURN_IF_COMPLAINT(CheckInterval(request.interval_us()));
  if (request.metric_groups_size() > kGroupsMax) {
    return Invalid("METRIC_GROUP_COUNT",
                   absl::StrCat("metric_groups has ", request.metric_groups_size(),
                                " entries; allowed: 0 (all) ... ", kGroupsMax));
  }
  for (int i = 0; i < request.metric_groups_size(); ++i) {
    STEPWELL_RETURN_IF_COMPLAINT(CheckText(absl::StrCat("metric_groups[", i, "]"),
                                           request.metric_groups(i), {1, kMetricGroupBytesMax},
                                           "METRIC_GROUP"));
  }
  trial = *std::move(selector);
  wanted = {};
  wanted.on = request.on();
  wanted.interval_us = request.interval_us();
  auto& groups = wanted.metric_groups;
  groups.assign(request.metric_groups().begin(), request.metric_groups().end());
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return std::nullopt;
}

}  // namespace stepwell
