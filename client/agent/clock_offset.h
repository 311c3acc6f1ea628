// ClockOffset: by how much the master's wall clock is ahead of ours, and how far off that may be.
// Each Open that is answered is a timed exchange, and each time that the master is asked for (ClockCalls): it stamped
// its answer somewhere between our sending and our receiving, so its clock was at the middle, give or take half the round
// trip. The most certain exchange counts, until its age makes a newer one more certain, or a newer one contradicts it: then a
// clock was set. Thread-safe.
//
//   offset.OnSent(writer, clock.Monotonic());
//   offset.OnAnswered(writer, absl::FromUnixMicros(opened.server_time_us()), clock.Monotonic());
//   if (const auto now = offset.Read(clock.Now(), clock.Monotonic())) ... now->ahead, now->error
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/trace/master_clock.h"

namespace stepwell::agent {

class ClockOffset {
 public:
  static constexpr double kDriftMax = kClockDriftMax;
  // Between two questions for the time: as a rule, and while traces are written that say it.
  static constexpr absl::Duration kAskInterval = absl::Seconds(60);
  static constexpr absl::Duration kAskIntervalOfTraces = absl::Seconds(10);

  struct Reading {
    absl::Duration ahead;  // master's clock - ours
    absl::Duration error;  // the true value lies within ahead ± error
  };

  // An exchange begins. `who` tells it from others under way.
  void OnSent(const std::string& who, absl::Duration monotonic) ABSL_LOCKS_EXCLUDED(mu_);
  // Likewise, for nothing but the time.
  void OnAsked(const std::string& who, absl::Duration monotonic) ABSL_LOCKS_EXCLUDED(mu_);
  // It ends. Without a beginning, or with a time of 1970 or before, it tells nothing.
  void OnAnswered(const std::string& who, absl::Time server_time, absl::Duration monotonic)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The connection is gone, and with it the answers. The next one may lead to another master: the first exchange there
  // counts, however certain those before it were.
  void Forget() ABSL_LOCKS_EXCLUDED(mu_);

  // The time should be asked for.
  bool IsAskDue(absl::Duration monotonic) const ABSL_LOCKS_EXCLUDED(mu_);
  // A trace is written that says it: for half a minute it is asked for more often.
  void NoteTraced(absl::Duration monotonic) ABSL_LOCKS_EXCLUDED(mu_);

  // Empty before the first exchange. Our own clock may have been set since: only its time now counts.
  std::optional<Reading> Read(absl::Time now, absl::Duration monotonic) const
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // The master's wall clock was at `server_time` when our monotonic one was at `at`, give or take.
  struct Exchange {
    absl::Time server_time;
    absl::Duration at;
    absl::Duration error;
  };
  static bool Contradict(const Exchange& before, const Exchange& after);
  static absl::Duration ErrorAt(const Exchange& exchange, absl::Duration monotonic);

  mutable absl::Mutex mu_;
  std::map<std::string, absl::Duration> sent_ ABSL_GUARDED_BY(mu_);
  std::optional<Exchange> best_ ABSL_GUARDED_BY(mu_);
  bool is_of_before_ ABSL_GUARDED_BY(mu_) = false;  // best_ is of a connection that is gone
  absl::Duration asked_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  absl::Duration traced_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
