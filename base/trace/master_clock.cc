#include "base/trace/master_clock.h"

#include <algorithm>

namespace stepwell {
namespace {

constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;
// Of two clocks that have anything in common; sums of several fit into 64 bits.
constexpr std::int64_t kAheadMaxNs = 24 * 366 * kHourNs;

std::int64_t DriftNs(std::int64_t from_ns, std::int64_t to_ns) {
  const double apart = static_cast<double>(to_ns) - static_cast<double>(from_ns);
  return static_cast<std::int64_t>(std::max(apart, 0.0) * kClockDriftMax) + 1;
}

}  // namespace

void MasterClock::Take(const Reading& reading, std::string_view trial) {
  const bool is_absurd = reading.error_ns < 0 || reading.error_ns > kAheadMaxNs ||
                         reading.ahead_ns > kAheadMaxNs || reading.ahead_ns < -kAheadMaxNs;
  const bool is_late = last_.has_value() && reading.at_ns < last_->at_ns;
  const bool is_others = last_.has_value() && trial != trial_;
  if (is_absurd || is_late || is_others) return;
  std::int64_t low = reading.ahead_ns - reading.error_ns;
  std::int64_t high = reading.ahead_ns + reading.error_ns;
  if (!last_.has_value()) {
    first_ = reading;
    trial_ = trial;
    low_ns_ = low;
    high_ns_ = high;
  } else {
    // In between the bounds of both hold, each grown by the drift: at most where they meet.
    const std::int64_t drift = DriftNs(last_->at_ns, reading.at_ns);
    high = std::max(high, (last_->ahead_ns + last_->error_ns + high + drift) / 2);
    low = std::min(low, (last_->ahead_ns - last_->error_ns + low - drift) / 2);
    low_ns_ = std::min(low_ns_, low);
    high_ns_ = std::max(high_ns_, high);
  }
  last_ = reading;
}

std::int64_t MasterClock::ErrorFrom(std::int64_t first_ns) const {
  const std::int64_t off = std::max(high_ns_ - last_->ahead_ns, last_->ahead_ns - low_ns_);
  return off + (first_ns < first_.at_ns ? DriftNs(first_ns, first_.at_ns) : 0);
}

}  // namespace stepwell
