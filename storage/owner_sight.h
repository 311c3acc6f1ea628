// OwnerSight: under which epoch the masters row was seen last, and when it was asked for, so that not each question
// asks anew. What it promises, and what of it is given up:
//
//   - Whoever knows the epoch from here knows that it was the masters row's at a moment at most `kept` ago. A master
//     that another one replaced since answers as of then: what the other has committed meanwhile may be missing from
//     its answers for that long, as if they had been asked that much earlier. What this process itself changes is seen
//     at once (book_memory.h, 1), and so is its own finding that it lost the ownership, for it then asks under no epoch.
//   - The moment is that at which the question was sent, not that of its answer.
//
// Thread-safe.
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

class OwnerSight {
 public:
  // Zero: each question asks.
  explicit OwnerSight(absl::Duration kept) : kept_(kept) {}

  // Whether the row was seen with `epoch` a short time before `now`.
  bool Saw(std::int64_t epoch, SteadyTime now) const ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    return epoch == epoch_ && now < asked_ + kept_;
  }
  // What a question that was sent at `asked` was answered; an older one changes nothing.
  void Note(std::int64_t epoch, SteadyTime asked) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    if (asked < asked_) return;
    epoch_ = epoch;
    asked_ = asked;
  }
  // The database may be another one.
  void Forget() ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    epoch_ = 0;
  }

 private:
  const absl::Duration kept_;
  mutable absl::Mutex mu_;
  std::int64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;  // 0 = none
  SteadyTime asked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
