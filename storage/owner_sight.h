// OwnerSight: under which epoch the masters row was seen last, and when it was asked for, so that not each question
// asks anew. What it promises, and what of it is given up:
//
//   - Whoever knows the epoch from here knows that it was the masters row's at a moment at most `kept` ago, by the clock
//     that stands still while a machine sleeps. A master that another one replaced since answers as of then: what the
//     other has committed meanwhile may be missing from its answers for that long, as if they had been asked that much
//     earlier. What this process itself changes is seen at once (book_memory.h, 1), and so is its own finding that it lost
//     the ownership, for it then asks under no epoch.
//   - So it serves answers of which all comes from memory. What is asked of the database beside memory must not mix two
//     masters' moments: it asks who owns the database, too.
//   - The moment is that at which the question was sent, not that of its answer. Questions that come together, before
//     any was answered, each ask.
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

  // When, and with which age of the reader's memory: another age may be another database's.
  struct Moment {
    SteadyTime time;
    std::int64_t memory_age = 0;
  };

  // Whether the row was seen with `epoch` a short time before `now`.
  bool Saw(std::int64_t epoch, const Moment& now) const ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    return epoch != 0 && epoch == epoch_ && now.memory_age == asked_.memory_age &&
           now.time < asked_.time + kept_;
  }
  // What a question that was sent at `asked` was answered; an older one changes nothing.
  void Note(std::int64_t epoch, const Moment& asked) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    if (asked.time < asked_.time) return;
    epoch_ = epoch;
    asked_ = asked;
  }

 private:
  const absl::Duration kept_;
  mutable absl::Mutex mu_;
  std::int64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;  // 0 = none
  Moment asked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
