#include "client/agent/master_reading.h"

namespace stepwell::agent {

std::optional<MasterClock::Reading> ReadMasterClock(const ClockAnchor& anchor,
                                                    const ClockOffset& offset, const Clock& clock) {
  const std::uint64_t before_ns = MonotonicNs();
  const absl::Time now = clock.Now();
  const std::optional<ClockOffset::Reading> reading = offset.Read(now, clock.Monotonic());
  if (!reading) return std::nullopt;
  const std::int64_t at_ns = anchor.ToUnixNs(before_ns);
  const auto looked_ns = static_cast<std::int64_t>(MonotonicNs() - before_ns);
  return MasterClock::Reading{.at_ns = at_ns,
                              .ahead_ns = absl::ToUnixNanos(now + reading->ahead) - at_ns,
                              .error_ns = absl::ToInt64Nanoseconds(reading->error) + looked_ns + 1};
}

std::int64_t WallAheadNs(const ClockAnchor& anchor, const Clock& clock) {
  constexpr std::int64_t kSetMinNs = 1'000'000;
  const std::uint64_t before_ns = MonotonicNs();
  const absl::Time now = clock.Now();
  const auto looked_ns = static_cast<std::int64_t>(MonotonicNs() - before_ns);
  const std::int64_t ahead_ns = BoundedSum(absl::ToUnixNanos(now), -anchor.ToUnixNs(before_ns));
  return ahead_ns >= -kSetMinNs && ahead_ns <= kSetMinNs + looked_ns ? 0 : ahead_ns;
}

}  // namespace stepwell::agent
