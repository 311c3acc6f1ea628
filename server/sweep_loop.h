// SweepLoop: removes what the caps say, once an interval by itself and when asked. Step 11 of a sample's
// line. One sweep at a time, in calls of at most about a second that are small transactions in
// themselves, so that no commit waits for it. Ages go by BelievedTime, from the first look of this master on. One
// thread, "sweep".
//
//   SweepLoop sweeps({}, {store, state, clock});
//   sweeps.Start();
//   auto swept = sweeps.SweepNow(std::nullopt, kAllProjects, deadline, [] { return false; });
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/steady_time.h"
#include "base/worker.h"
#include "server/believed_time.h"
#include "server/master_state.h"
#include "storage/caps_store.h"

namespace stepwell {

// What one sweep, from its beginning to its end, has done.
struct Swept {
  CapRemovals removed = {};
  std::int32_t leaves_left = 0;
  std::int64_t deleted_row_count = 0;
};

class SweepLoop {
 public:
  struct Options {
    absl::Duration interval = absl::Minutes(1);
  };
  // All outlive this.
  struct Parts {
    CapsStore& store;
    MasterState& state;
    const Clock& clock;
  };

  SweepLoop(Options options, Parts parts) : options_(options), parts_(parts) {}
  ~SweepLoop() { Stop(); }

  void Start();
  // Sweeps end after the call under way, and none begins. Does not block.
  void AskStop() ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until the thread has ended. Twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // Sweeps the trials of `target`, which is looked for in `projects`, or all. Waits for a sweep that is under way. kUnavailable: not
  // owner, stopping; kDeadlineExceeded: at `deadline` something was left, what went is in its text;
  // kCancelled; otherwise as CapsStore::Sweep, or the first error of a place, once all others are swept.
  absl::StatusOr<Swept> SweepNow(const std::optional<CapsTarget>& target,
                                 const ProjectFilter& projects, SteadyTime deadline,
                                 const std::function<bool()>& cancelled) ABSL_LOCKS_EXCLUDED(mu_);

  // By all sweeps since the start, those that did not end included.
  std::int64_t removed_sample_count() const {
    return removed_sample_count_.load(std::memory_order_relaxed);
  }

 private:
  void Run();
  // False when it is time to stop.
  bool WaitForTime() ABSL_LOCKS_EXCLUDED(mu_);
  bool stopping() const ABSL_LOCKS_EXCLUDED(mu_);
  std::int64_t NowUs() ABSL_LOCKS_EXCLUDED(mu_);

  const Options options_;
  const Parts parts_;
  std::atomic<std::int64_t> removed_sample_count_{0};
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool is_sweeping_ ABSL_GUARDED_BY(mu_) = false;
  BelievedTime believed_ ABSL_GUARDED_BY(mu_);
  bool doubt_told_ ABSL_GUARDED_BY(mu_) = false;
  Worker worker_;
};

}  // namespace stepwell
