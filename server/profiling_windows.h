// ProfilingWindows: when the profiling window of a trial has passed (the cap profiling_window_seconds,
// from the trial's first Open on, over all attempts). Its open writers are then told to record nothing,
// those that open later likewise, and one gap tells it; what an operator stored stays as it is, and
// holds again where the window is lifted. Stands between CapsStore, which knows caps, and
// WriterDirector, which tells writers. Thread-safe. One thread, "windows".
//
//   ProfilingWindows windows({store, state, director, clock});
//   windows.Start();
//   if (windows.IsOver(trial_id)) ...
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/worker.h"
#include "server/master_state.h"
#include "server/writer_director.h"
#include "storage/caps_store.h"

namespace stepwell {

class ProfilingWindows {
 public:
  // All outlive this.
  struct Parts {
    CapsStore& store;
    MasterState& state;
    WriterDirector& director;
    const Clock& clock;
  };
  explicit ProfilingWindows(Parts parts) : parts_(parts) {}
  ~ProfilingWindows() { Stop(); }

  void Start();
  // Twice is fine.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

  // Asks the database for a trial of which no writer is open; false where that does not answer.
  bool IsOver(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  // Caps have changed: all is read anew, and writers are told within 250 ms.
  void Reread() ABSL_LOCKS_EXCLUDED(mu_);
  // One look at all trials with open writers. Blocks on the database where something is not known.
  void Look() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // When the window of the trial ends; kNever where there is none.
  absl::StatusOr<std::int64_t> EndOf(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteGap(TrialId trial_id, std::int64_t end_us) ABSL_LOCKS_EXCLUDED(mu_);
  std::int64_t NowUs() const { return absl::ToUnixMicros(parts_.clock.Now()); }

  const Parts parts_;
  mutable absl::Mutex mu_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  // Grows with each change of caps: what was read before is not kept.
  std::int64_t version_ ABSL_GUARDED_BY(mu_) = 0;
  absl::flat_hash_map<TrialId, std::int64_t> ends_ ABSL_GUARDED_BY(mu_);
  // Whose gap is stored; confined to Look.
  absl::flat_hash_set<TrialId> noted_;
  Worker worker_;
};

}  // namespace stepwell
