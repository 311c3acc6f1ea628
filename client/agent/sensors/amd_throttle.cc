#include "client/agent/sensors/amd_throttle.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

constexpr std::uint64_t Bits(int first, int last) {
  std::uint64_t bits = 0;
  for (int bit = first; bit <= last; ++bit) bits |= std::uint64_t{1} << bit;
  return bits;
}

// As the driver numbers them: limits of power, of current, of temperatures (chip, memory, regulators,
// liquid), signals that something outside is hot.
constexpr std::uint64_t kPower = Bits(0, 7);
constexpr std::uint64_t kCurrent = Bits(16, 23);
constexpr std::uint64_t kTemperature = Bits(32, 43);
constexpr std::uint64_t kHotSignal = Bits(44, 47);
constexpr std::uint64_t kOther = ~(kPower | kCurrent | kTemperature | kHotSignal);

std::vector<AmdThrottle::Reason> ReasonsOf(std::uint64_t throttlers) {
  return {{"power_cap", (throttlers & kPower) != 0},
          {"current", (throttlers & kCurrent) != 0},
          {"sw_thermal", (throttlers & kTemperature) != 0},
          {"hw_thermal", (throttlers & kHotSignal) != 0},
          {"other", (throttlers & kOther) != 0}};
}

}  // namespace

absl::StatusOr<std::vector<AmdThrottle::Reason>> AmdThrottle::Next(const AmdTable& table) {
  if (table.throttlers) return ReasonsOf(*table.throttlers);
  if (table.cycles) return NextOf(*table.cycles);
  return absl::UnimplementedError(absl::StrCat("no throttling in the driver's table 1.",
                                               table.revision, " as the library has it"));
}

absl::StatusOr<std::vector<AmdThrottle::Reason>> AmdThrottle::NextOf(
    const AmdTable::Cycles& cycles) {
  const std::optional<AmdTable::Cycles> last = std::exchange(last_, cycles);
  // All counts stood still or went on, or else the chip began anew.
  if (!last || cycles.all <= last->all) return std::vector<Reason>();
  const std::uint64_t all = cycles.all - last->all;
  bool is_anew = false;
  bool is_doubtful = false;
  const auto grew = [&](std::uint64_t AmdTable::Cycles::*total) {
    is_anew |= cycles.*total < (*last).*total;
    const std::uint64_t by = cycles.*total - (*last).*total;
    // Not more than all of them; the totals are not all taken at one moment.
    is_doubtful |= by > 2 * all + 2;
    return by > 0;
  };
  using Cycles = AmdTable::Cycles;
  const bool power = grew(&Cycles::power);
  const bool hot_signal = grew(&Cycles::hot_signal);
  const bool socket = grew(&Cycles::socket_hot);
  const bool regulator = grew(&Cycles::regulator_hot);
  const bool memory = grew(&Cycles::memory_hot);
  if (is_anew) return std::vector<Reason>();
  if (is_doubtful) {
    return absl::UnimplementedError("more cycles were throttled than there were: another layout");
  }
  return std::vector<Reason>{{"power_cap", power},
                             {"sw_thermal", socket || regulator || memory},
                             {"hw_thermal", hot_signal}};
}

}  // namespace stepwell::agent
