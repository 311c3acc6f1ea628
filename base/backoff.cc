#include "base/backoff.h"

#include <algorithm>

namespace stepwell {

absl::Duration Backoff::NextDelay() {
  // 2^20 times any first delay is beyond every longest one.
  const int doublings = std::min(attempt_++, 20);
  const absl::Duration top =
      std::min(options_.longest, options_.first * (std::int64_t{1} << doublings));
  const double low = absl::ToDoubleSeconds(options_.first / 2);
  const double high = std::max(low, absl::ToDoubleSeconds(top));
  return absl::Seconds(absl::Uniform(absl::IntervalClosed, bits_, low, high));
}

}  // namespace stepwell
