#include "storage/pg_cut.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace stepwell {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSecondNs = 1'000'000'000;

std::int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

}  // namespace

PgCut::PgCut()
    : timer_(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)), cut_ns_(kNever) {}

PgCut::~PgCut() {
  if (timer_ >= 0) close(timer_);
}

void PgCut::CutAfter(absl::Duration after) {
  const std::int64_t wanted_ns =
      MonotonicNs() + std::max<std::int64_t>(absl::ToInt64Nanoseconds(after), 0);
  std::int64_t before_ns = cut_ns_.load();
  do {
    if (before_ns <= wanted_ns) return;
  } while (!cut_ns_.compare_exchange_weak(before_ns, wanted_ns));
  // Of two at a time either may be last here; left() is asked where it matters which.
  itimerspec at{};
  at.it_value.tv_sec = wanted_ns / kSecondNs;
  at.it_value.tv_nsec = wanted_ns % kSecondNs;
  if (timer_ >= 0) timerfd_settime(timer_, TFD_TIMER_ABSTIME, &at, nullptr);
}

absl::Duration PgCut::left() const {
  const std::int64_t cut_ns = cut_ns_.load();
  if (cut_ns == kNever) return absl::InfiniteDuration();
  return absl::Nanoseconds(cut_ns - MonotonicNs());
}

}  // namespace stepwell
