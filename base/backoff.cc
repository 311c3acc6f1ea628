#include "base/backoff.h"

#include <sys/random.h>

#include <algorithm>
#include <cstdint>

#include "base/check.h"

namespace stepwell {
namespace {

// Within [0, 1). The kernel's chance, as Uuid's: a test that stands in for getrandom repeats a run.
double Chance() {
  std::uint64_t bits = 0;
  STEPWELL_CHECK(getrandom(&bits, sizeof(bits), 0) == sizeof(bits));
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

}  // namespace

absl::Duration Backoff::NextDelay() {
  // 2^20 times any first delay is beyond every longest one.
  const int doublings = std::min(attempt_++, 20);
  const absl::Duration top =
      std::min(options_.longest, options_.first * (std::int64_t{1} << doublings));
  const double low = absl::ToDoubleSeconds(options_.first / 2);
  const double high = std::max(low, absl::ToDoubleSeconds(top));
  return absl::Seconds(low + (high - low) * Chance());
}

}  // namespace stepwell
