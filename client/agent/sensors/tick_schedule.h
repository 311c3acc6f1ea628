// TickSchedule: when the ticks of one cadence are due: at once, 100 ms later (the first with rates),
// then at the multiples of the interval. All schedules of a machine share that grid, some a lead before
// it: one visit has all that was read, and ranks that are disturbed at all are disturbed together. What
// was slept through (a stopped process, a hung disk) is counted, not made up. Pure.
//
//   TickSchedule schedule(absl::Seconds(1), now);
//   if (schedule.due() <= now) late_count = schedule.Take(now);
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"

namespace stepwell::agent {

class TickSchedule {
 public:
  // Long enough for rates to mean something, and soon after the trial began.
  static constexpr absl::Duration kFirstRatesAfter = absl::Milliseconds(100);

  // REQUIRES: interval > 0. Times are monotonic. `lead`: so long before the others of the grid.
  TickSchedule(absl::Duration interval, absl::Duration now,
               absl::Duration lead = absl::ZeroDuration())
      : interval_(interval), lead_(lead), due_(now) {}

  absl::Duration due() const { return due_; }
  // A tick is taken at `now`, which is due. How many were missed before it.
  std::uint64_t Take(absl::Duration now) {
    if (std::exchange(first_, false)) {
      due_ += std::min(kFirstRatesAfter, interval_);
      return 0;
    }
    const std::int64_t missed = std::max<std::int64_t>((now - due_) / interval_, 0);
    const absl::Duration last_due = due_ + interval_ * missed;
    // One that was not on the grid may have come close to the next that is.
    const bool on_grid = absl::Floor(due_ + lead_, interval_) == due_ + lead_;
    due_ = NextOnGrid(on_grid ? last_due : std::max(last_due, now));
    return static_cast<std::uint64_t>(missed);
  }
  // Another interval begins with a tick now; the same goes on.
  void SetInterval(absl::Duration interval, absl::Duration now) {
    if (interval == interval_) return;
    interval_ = interval;
    due_ = now;
  }
  // After a pause: as at the start.
  void Restart(absl::Duration now) {
    due_ = now;
    first_ = true;
  }

 private:
  // One that comes too soon has no rates to speak of: half an interval lies between, or a second.
  absl::Duration NextOnGrid(absl::Duration after) const {
    const absl::Duration between = std::min(interval_ / 2, absl::Seconds(1));
    return absl::Ceil(after + between + lead_, interval_) - lead_;
  }

  absl::Duration interval_;
  absl::Duration lead_;
  absl::Duration due_;
  bool first_ = true;
};

}  // namespace stepwell::agent
