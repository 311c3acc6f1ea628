// BookChanges: whether the bookkeeping of a trial (its record, writers, ledger, gaps) may have changed since it
// was read. Every store of this process that changes some says so before it begins and when it is over, and of
// which trials; who remembers a book asks. It knows nothing of other masters: BookMemory says what else must hold.
// Bounded: beyond kTrialsMax all books count as changed, and it begins anew. Thread-safe.
//
//   const auto moment = changes.Now(trial_id);          // before the snapshot is taken
//   ... read the book ...
//   if (moment && changes.NoneSince(trial_id, *moment)) // the book is what the database holds
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/steady_time.h"

namespace stepwell {

// Whose books a change may change.
class BookScope {
 public:
  // Or of nobody knows which.
  static BookScope All() { return BookScope(); }
  static BookScope Of(TrialId trial_id) { return BookScope({trial_id}); }
  // In any order, some perhaps more than once; none = nobody's.
  static BookScope Of(std::vector<TrialId> trials) { return BookScope(std::move(trials)); }

  bool is_all() const { return !trials_.has_value(); }
  // REQUIRES: not all.
  const std::vector<TrialId>& trials() const { return *trials_; }

 private:
  BookScope() = default;
  explicit BookScope(std::vector<TrialId> trials);
  std::optional<std::vector<TrialId>> trials_;  // each once
};

class BookChanges {
 public:
  // Of a trial: its last change, at a time when none was under way.
  enum class Moment : std::int64_t {};
  enum class Outcome {
    kChanged,  // or undone, or both in parts
    kNothing,  // it found nothing to do
    kInDoubt,  // nobody answered: it may still come to pass
  };
  // After a change in doubt nothing holds for so long: much longer than any statement of ours may run.
  static constexpr absl::Duration kDoubtRest = absl::Minutes(10);
  // About 3 MB.
  static constexpr std::size_t kTrialsMax = 50'000;

  // `clock` outlives this.
  explicit BookChanges(const Clock& clock = RealClock::Get()) : clock_(clock) {}

  // No value while a change of the trial is under way, or may be.
  std::optional<Moment> Now(TrialId trial_id) const ABSL_LOCKS_EXCLUDED(mu_);
  // True: what was read of the trial since `moment` is what the database holds now, but for other masters.
  bool NoneSince(TrialId trial_id, Moment moment) const ABSL_LOCKS_EXCLUDED(mu_);

  // Before a transaction that may change books of `scope`, and after its outcome is known or given up.
  void Begin(const BookScope& scope) ABSL_LOCKS_EXCLUDED(mu_);
  // `changed`: within `begun`, where by now more is known.
  void End(const BookScope& begun, Outcome outcome, const BookScope& changed)
      ABSL_LOCKS_EXCLUDED(mu_);
  void End(const BookScope& begun, Outcome outcome) { End(begun, outcome, begun); }

 private:
  struct Trial {
    std::int64_t changed_no = 0;
    int under_way_count = 0;
  };
  std::optional<Moment> NowLocked(TrialId trial_id) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void NoteChangedLocked(const BookScope& changed) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ForgetTrialsLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Clock& clock_;
  mutable absl::Mutex mu_;
  std::int64_t last_no_ ABSL_GUARDED_BY(mu_) = 0;  // of all changes
  // Of changes of all books.
  Trial all_ ABSL_GUARDED_BY(mu_);
  absl::flat_hash_map<TrialId, Trial> trials_ ABSL_GUARDED_BY(mu_);
  SteadyTime doubt_end_ ABSL_GUARDED_BY(mu_) = SteadyTime::InfinitePast();
};

}  // namespace stepwell
