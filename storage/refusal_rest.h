// RefusalRest: how long a trial that is full rests after series that were refused: a thousand of them cost the store a few
// milliseconds, and ten times that where they are made, read, checked and told, which no turn of the store sees. Whoever names
// them without end is let ask for ten thousand a second. Thread-safe.
//
//   absl::SleepFor(rest.End(trial_id).Left());
//   ... asks ...
//   rest.After(trial_id, refused_count, SteadyTime::Now());
#pragma once

#include <algorithm>
#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/ids.h"
#include "base/steady_time.h"

namespace stepwell {

class RefusalRest {
 public:
  static constexpr absl::Duration kOfEach = absl::Microseconds(100);
  // A master that stops waits for whoever rests.
  static constexpr absl::Duration kLongest = absl::Milliseconds(500);

  // So many series of `trial_id` were refused up to `now`.
  void After(TrialId trial_id, std::size_t count, SteadyTime now) ABSL_LOCKS_EXCLUDED(mu_) {
    if (count == 0) return;
    absl::MutexLock lock(&mu_);
    absl::erase_if(ends_, [now](const auto& entry) { return entry.second <= now; });
    SteadyTime& end = ends_.try_emplace(trial_id, now).first->second;
    end = std::min(end + static_cast<double>(count) * kOfEach, now + kLongest);
  }
  // When others of it may be asked for.
  SteadyTime End(TrialId trial_id) const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    const auto found = ends_.find(trial_id);
    return found == ends_.end() ? SteadyTime::InfinitePast() : found->second;
  }

 private:
  mutable absl::Mutex mu_;
  // Those that are over go with the next.
  absl::flat_hash_map<TrialId, SteadyTime> ends_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
