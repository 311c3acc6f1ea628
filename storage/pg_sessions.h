// PgSessions: the connections of a process that carry one PgCut, so that all that are open can be given up
// while other threads hold them, or nobody does. Thread-safe.
//
//   const std::int64_t era = sessions.era();    // before connecting
//   place = sessions.Enter(PQsocket(connection), era);
//   sessions.GiveUp();                          // on another thread: owners use none of them again
//   sessions.EndOver();                         // and those that are still there end now
//
// Invariant: a connection that was begun before a GiveUp is of an era that is over, one that was begun after it
// is not; EndOver ends all of the first kind and none of the second.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

namespace stepwell {

class PgSessions {
 public:
  // Of one connection, from when it is open until it is closed.
  class Place {
   public:
    Place(PgSessions& sessions, int socket, std::int64_t era);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    bool is_over() const { return era_ != sessions_.era(); }

   private:
    friend class PgSessions;
    PgSessions& sessions_;
    // A duplicate: libpq closes its own whenever it likes, and the number would be somebody else's then.
    const int socket_;
    const std::int64_t era_;
  };

  std::int64_t era() const { return era_.load(); }
  // `era`: of before the connection was begun. This outlives the place.
  std::unique_ptr<Place> Enter(int socket, std::int64_t era) {
    return std::make_unique<Place>(*this, socket, era);
  }
  // How many that are open are of an era that is over now.
  int GiveUp() ABSL_LOCKS_EXCLUDED(mu_);
  // What waits on one of these finds its connection lost. Does not block. Returns how many there were.
  int EndOver() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::atomic<std::int64_t> era_ = 0;
  absl::Mutex mu_;
  absl::flat_hash_set<const Place*> places_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
