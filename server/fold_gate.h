// FoldGate: lets readers of a trial and a fold of it in bulk exclude each other. A row in a leaf does not say of
// which fold it is: a reader who has the heads of before it and the rows of after would have its samples
// twice, and one of the other order none. So such a fold begins only where nobody reads the trial, and who comes
// meanwhile waits until it is over. A fold never waits: where somebody reads, or waits to, it takes the way
// through recent, whose rows say it. A core. Thread-safe.
//
//   FoldGate::Reader reader = gate.Enter(trial_id);            // before heads are looked at; as long as the pin
//   if (gate.Begin(trial_id)) { ... commit, take from heads ...; gate.End(trial_id); }
#pragma once

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"

namespace stepwell {

class FoldGate {
 public:
  // One who reads a trial. Movable; leaves by itself. The gate outlives it.
  class Reader {
   public:
    Reader(Reader&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)), trial_id_(other.trial_id_) {}
    Reader& operator=(Reader&&) = delete;
    ~Reader() {
      if (gate_ != nullptr) gate_->Leave(trial_id_);
    }

   private:
    friend class FoldGate;
    Reader(FoldGate* gate, TrialId trial_id) : gate_(gate), trial_id_(trial_id) {}
    FoldGate* gate_;
    TrialId trial_id_;
  };

  // Blocks while the trial is folded in bulk: one transaction and what it has to prepare, or as long as nobody knows
  // what came of it.
  Reader Enter(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for as much without entering; false = it is folded still. For who may wait for a time only: Enter then
  // waits for one fold at most, which has begun in between.
  bool AwaitEnd(TrialId trial_id, absl::Duration most) ABSL_LOCKS_EXCLUDED(mu_);

  // False: somebody reads the trial, or waits to, or a fold of it has not ended: nobody knows what came of it.
  bool Begin(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  // Of one that Open ended it does nothing.
  void End(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  // Ends all folds: heads are empty.
  void Open() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Trial {
    int reader_count = 0;  // who waits to be one is one
    bool is_folded = false;
  };
  void Leave(TrialId trial_id) ABSL_LOCKS_EXCLUDED(mu_);
  bool IsFoldedLocked(TrialId trial_id) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  absl::Mutex mu_;
  absl::flat_hash_map<TrialId, Trial> trials_ ABSL_GUARDED_BY(mu_);  // with a reader or a fold
};

}  // namespace stepwell
