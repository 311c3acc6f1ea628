// SamplingLoop: the thread that reads this machine's sensors on time. It stands between
// SystemSampler and SamplerWriter; a disk that hangs under a sensor holds up this thread alone.
// Thread-safe.
//
//   SamplingLoop loop(SystemSampler(ProcReader("/")), absl::Seconds(1), clock);
//   for (const TimedTick& tick : loop.TakeTicks()) ...
#pragma once

#include <deque>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/worker.h"
#include "client/agent/system_sampler.h"

namespace stepwell::agent {

struct TimedTick {
  std::int64_t time_us = 0;
  // Ticks before this one that came too late to be taken.
  std::uint64_t late_count = 0;
  SystemTick tick;
};

class SamplingLoop {
 public:
  // Takes the first tick at once, the first rates 100 ms later. `clock` outlives the loop.
  SamplingLoop(SystemSampler sampler, absl::Duration interval, const Clock& clock);
  // Takes a last tick.
  ~SamplingLoop() { Stop(); }

  std::vector<TimedTick> TakeTicks() ABSL_LOCKS_EXCLUDED(mu_);
  void SetInterval(absl::Duration interval) ABSL_LOCKS_EXCLUDED(mu_);
  void Pause(bool paused) ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a last tick and joins; TakeTicks gives what is left. Stopping twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void Run();
  void TakeOne(std::uint64_t late_count);
  // Waits until `due`; false when stopping. Returns at once when the interval changes.
  bool WaitUntil(absl::Duration due) ABSL_LOCKS_EXCLUDED(mu_);

  SystemSampler sampler_;  // confined to the thread
  const Clock& clock_;

  absl::Mutex mu_;
  absl::Duration interval_ ABSL_GUARDED_BY(mu_);
  bool changed_ ABSL_GUARDED_BY(mu_) = false;
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // Bounded: the oldest goes, counted as late.
  std::deque<TimedTick> ticks_ ABSL_GUARDED_BY(mu_);
  std::uint64_t late_count_ ABSL_GUARDED_BY(mu_) = 0;
  Worker worker_;
};

}  // namespace stepwell::agent
