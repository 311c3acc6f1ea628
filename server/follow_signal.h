// FollowSignal: tells the followers of one trial that a commit brought something. The committer bumps a
// number and wakes who waits at that moment; who is writing or pausing finds the number changed later,
// so that many commits are one wake-up. Thread-safe.
//
//   const std::uint64_t seen = signal.version();
//   ... take what there is ...
//   signal.WaitPast(seen, deadline);
#pragma once

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"

namespace stepwell {

class FollowSignal {
 public:
  void Notify() ABSL_LOCKS_EXCLUDED(mu_) {
    {
      absl::MutexLock lock(&mu_);
      ++version_;
    }
    changed_.SignalAll();
  }
  std::uint64_t version() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return version_;
  }
  // Until there was a Notify since version() was `seen`, or `deadline`.
  void WaitPast(std::uint64_t seen, SteadyTime deadline) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    while (version_ == seen) {
      if (changed_.WaitWithTimeout(&mu_, deadline.Left())) return;
    }
  }

 private:
  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  std::uint64_t version_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
