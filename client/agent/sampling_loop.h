// SamplingLoop: the thread that reads this machine's sensors on time, each cadence at
// multiples of its interval. It stands between SensorSet and SamplerWriter. Thread-safe.
//
//   SamplingLoop loop(MakeMachineSensors({}, clock), selection, clock);
//   for (const TimedTick& tick : loop.TakeTicks()) ...
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/worker.h"
#include "client/agent/sensors/absence_ledger.h"
#include "client/agent/sensors/sensor_set.h"
#include "client/agent/sensors/tick_schedule.h"

namespace stepwell::agent {

struct TimedTick {
  Cadence cadence = Cadence::kFast;
  std::int64_t time_us = 0;
  // Of a tick that was given before: what one device answered after it.
  bool is_past = false;
  // Ticks before this one that came too late to be taken, and when they would have been.
  std::uint64_t late_count = 0;
  AbsenceSpan late_span = {};
  Reading reading;
};

class SamplingLoop {
 public:
  // Takes the first ticks at once, the first rates 100 ms later. `clock` outlives the loop. `on_ticks`
  // is called on the loop's thread when there are some to take, and must not block.
  SamplingLoop(
      std::unique_ptr<SensorSet> sensors, SensorSelection selection, const Clock& clock,
      std::function<void()> on_ticks = [] {});
  // Takes a last tick.
  ~SamplingLoop() { Stop(); }

  std::vector<TimedTick> TakeTicks() ABSL_LOCKS_EXCLUDED(mu_);
  // Takes effect with the next tick; another interval begins with a tick at once.
  void Select(SensorSelection selection) ABSL_LOCKS_EXCLUDED(mu_);
  void Pause(bool paused) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a last tick of each cadence and joins; TakeTicks gives what is left. Stopping twice is
  // fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct State {
    bool paused = false;
    bool stopping = false;
    // Nothing changed: it is `due` by now.
    bool timed_out = false;
    std::shared_ptr<const SensorSelection> selection;
  };
  void Run();
  // `late_count` of the cadence's came too late before it.
  void TakeOne(Cadence cadence, SensorSet::Tick tick, std::uint64_t late_count,
               const std::shared_ptr<const SensorSelection>& selection) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteLateLocked(std::uint64_t count, AbsenceSpan span) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void KeepLocked(TimedTick tick) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeDue(absl::Duration now, const State& state);
  absl::Duration NextDue() const;
  // Of sensors that were found meanwhile.
  void AddSchedules(const SensorSelection& selection, absl::Duration now);
  // Until `due`, or until something changed.
  State WaitUntil(absl::Duration due) ABSL_LOCKS_EXCLUDED(mu_);

  const std::unique_ptr<SensorSet> sensors_;  // confined to the thread
  const Clock& clock_;
  const std::function<void()> on_ticks_;
  // Confined to the thread.
  std::map<Cadence, TickSchedule> schedules_;

  absl::Mutex mu_;
  State state_ ABSL_GUARDED_BY(mu_);
  bool changed_ ABSL_GUARDED_BY(mu_) = false;
  // Bounded: the oldest goes, counted as late.
  std::deque<TimedTick> ticks_ ABSL_GUARDED_BY(mu_);
  std::uint64_t late_count_ ABSL_GUARDED_BY(mu_) = 0;
  AbsenceSpan late_span_ ABSL_GUARDED_BY(mu_) = {};
  Worker worker_;
};

}  // namespace stepwell::agent
