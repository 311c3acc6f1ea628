#include "client/recorder/src/clock_keeper.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <string_view>

#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {
namespace {

// The kernel takes another clock where it finds the counter wanting. At four looks a second.
constexpr std::uint32_t kLooksPerQuestion = 64;
constexpr int kTries = 8;
// Between two reads of the counter around one of the clock: 40 ns, unless somebody came between.
constexpr std::uint64_t kWidthMax = 4000;
// Over a shorter time what the reads are off by counts for too much.
constexpr std::uint64_t kIntervalMinNs = 100'000'000;
// Of a counter of 1 GHz at least, for which HotClock's numbers are made, or a machine that was suspended.
constexpr std::uint64_t kIntervalMaxNs = 4'000'000'000;
// A clock that is being turned runs at another pace in each interval: what was told is off by more than
// that then, 2 us in a second, and the kernel alone knows.
constexpr std::uint32_t kDriftShift = 19;

}  // namespace

std::optional<HotClock::Reading> ClockKeeper::ReadBoth() {
  HotClock::Reading read;
  std::uint64_t width = kWidthMax;
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = HotClock::ReadCounter();
    const std::uint64_t ns = MonotonicNs();
    const std::uint64_t took = HotClock::ReadCounter() - before;
    if (took >= width) continue;
    width = took;
    read = {before + took / 2, ns};
  }
  if (read.count == 0) return std::nullopt;
  return read;
}

bool ClockKeeper::IsCounterTheClock() {
#if defined(__x86_64__)
  // What virtual machines may hide, and the kernel then does without.
  constexpr unsigned kHasRdtscp = 1U << 27;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x80000001, &a, &b, &c, &d) == 0 || (d & kHasRdtscp) == 0) return false;
  const int errno_before = errno;  // the trial's
  const UniqueFd file(open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
                           O_RDONLY | O_CLOEXEC));
  char text[8] = {};
  const ssize_t count = file.get() < 0 ? 0 : read(file.get(), text, sizeof(text));
  errno = errno_before;
  return count > 0 && std::string_view(text, static_cast<std::size_t>(count)) == "tsc\n";
#else
  return false;
#endif
}

std::uint32_t ClockKeeper::NsPerCount(const HotClock::Reading& from, const HotClock::Reading& to) {
  if (to.count <= from.count || to.ns <= from.ns || to.ns - from.ns > kIntervalMaxNs) return 0;
  const std::uint64_t rate = ((to.ns - from.ns) << 32) / (to.count - from.count);
  return rate > std::numeric_limits<std::uint32_t>::max() ? 0 : static_cast<std::uint32_t>(rate);
}

void ClockKeeper::Look() {
  if (look_count_++ % kLooksPerQuestion == 0) is_counter_the_clock_ = IsCounterTheClock();
  if (is_counter_the_clock_) {
    LearnFrom(ReadBoth());
  } else if (clock_.is_set()) {
    last_.reset();
    ns_per_count_ = 0;
    clock_.Set({}, 0);
  }
}

void ClockKeeper::LearnFrom(const std::optional<HotClock::Reading>& read) {
  if (!read) return;
  // A clock that seems to go back is one that was changed: NsPerCount says so.
  if (last_ && read->ns > last_->ns && read->ns - last_->ns < kIntervalMinNs) return;
  const std::uint32_t before = ns_per_count_;
  ns_per_count_ = last_ ? NsPerCount(*last_, *read) : 0;
  last_ = read;
  const std::uint32_t drift =
      ns_per_count_ > before ? ns_per_count_ - before : before - ns_per_count_;
  const bool is_steady = before != 0 && drift <= before >> kDriftShift;
  clock_.Set(*read, is_steady ? ns_per_count_ : 0);
}

}  // namespace stepwell::recorder
