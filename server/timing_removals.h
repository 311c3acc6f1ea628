// Whether a cap removed samples of one attempt of a trial. Gaps are of the trial: what a cap took of an attempt before it
// leaves this one's quantiles what they are. A core.
//
//   const AttemptBegin begin{created_us, first_held_us};
//   if (MayBeOfAttempt(gap.last_time_us, view.usage(), "timing", begin)) ...
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "storage/read_store.h"

namespace stepwell {

struct AttemptBegin {
  // When its first writer opened, by the master's side's clock. None = unknown.
  std::optional<std::int64_t> created_time_us;
  // The oldest of its samples that are held, by its machines' clocks. None = there are none.
  std::optional<std::int64_t> first_sample_time_us;
};

// Whether what a cap removed of the group, or of all, up to `last_time_us` (0 = unknown) may be of the attempt. `usage`:
// the ledger of the trial. Not knowing is true.
//
// What was received before the attempt was created is not of it, but gaps tell when samples were made. An attempt may
// have made some long before the master heard of it, while that was away, or by a clock that was behind: then its
// oldest samples, or days of the ledger, which are the master's, say so.
bool MayBeOfAttempt(std::int64_t last_time_us, const std::vector<UsageRecord>& usage,
                    const std::string& metric_group, const AttemptBegin& begin);

}  // namespace stepwell
