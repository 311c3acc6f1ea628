// BookChanges: whether the bookkeeping of trials (trials, writers, ledger, gaps) may have changed since it
// was read. Every store of this process that changes it says so before it begins and when it is over; who
// remembers a book asks. It knows nothing of other masters: BookMemory says what else must hold.
// One count for all trials: folds and merges, which change most, take many of them at once.
// Thread-safe.
//
//   const auto moment = changes.Now();        // before the snapshot is taken
//   ... read the book ...
//   if (moment && changes.NoneSince(*moment)) // the book is what the database holds
#pragma once

#include <cstdint>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/steady_time.h"

namespace stepwell {

class BookChanges {
 public:
  // One at which no change was under way.
  enum class Moment : std::int64_t {};
  enum class Outcome {
    kChanged,  // or undone, or both in parts
    kNothing,  // it found nothing to do
    kInDoubt,  // nobody answered: it may still come to pass
  };
  // After a change in doubt nothing holds for so long: much longer than any statement of ours may run.
  static constexpr absl::Duration kDoubtRest = absl::Minutes(10);

  // `clock` outlives this.
  explicit BookChanges(const Clock& clock = RealClock::Get()) : clock_(clock) {}

  // No value while a change is under way, or may be.
  std::optional<Moment> Now() const ABSL_LOCKS_EXCLUDED(mu_);
  // True: what was read since `moment` is what the database holds now, but for other masters.
  bool NoneSince(Moment moment) const ABSL_LOCKS_EXCLUDED(mu_);

  // Before a transaction that may change a book, and after its outcome is known or given up.
  void Begin() ABSL_LOCKS_EXCLUDED(mu_);
  void End(Outcome outcome) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  bool AtRestLocked() const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  mutable absl::Mutex mu_;
  std::int64_t changed_count_ ABSL_GUARDED_BY(mu_) = 0;
  int under_way_count_ ABSL_GUARDED_BY(mu_) = 0;
  SteadyTime doubt_end_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
};

}  // namespace stepwell
