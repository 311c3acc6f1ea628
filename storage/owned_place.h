// OwnedPlace: where the database lay as this process took it, by the owner's look (PgIncarnation). A session that comes
// later compares: one that finds another place speaks with a database that was restored, or promoted, since, in which numbers
// of series that this epoch gave may be others' by now. Thread-safe.
//
//   owned.Note(owner.epoch, place);                          // the ownership's thread, as it takes an epoch
//   if (!owned.ChangeSince(epoch, now).empty()) ...          // the committer's, on a session that is new
#pragma once

#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "storage/database_place.h"

namespace stepwell {

class OwnedPlace {
 public:
  void Note(std::int64_t epoch, const DatabasePlace& place) ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    epoch_ = epoch;
    place_ = place;
  }
  // As PlaceChange; empty, too, where another epoch was taken last, or none.
  std::string ChangeSince(std::int64_t epoch, const DatabasePlace& now) const
      ABSL_LOCKS_EXCLUDED(mu_) {
    const absl::MutexLock lock(&mu_);
    return epoch == epoch_ ? PlaceChange(place_, now) : "";
  }

 private:
  mutable absl::Mutex mu_;
  std::int64_t epoch_ ABSL_GUARDED_BY(mu_) = 0;  // 0 = none
  DatabasePlace place_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
