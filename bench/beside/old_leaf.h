// OldLeaf: a day that is over its age, made from the rows of today; how long its sweep locks, and how much
// it writes. Blocking; confined to one thread.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/beside/admin_client.h"

namespace stepwell::bench {

// Copies what trials like `trials` (a pattern of LIKE) have merged today, with rollups and lines of the
// ledger, to the leaves of so many days ago. REQUIRES: no leaf is there.
absl::Status MakeOldLeaf(AdminClient& admin, const std::string& trials, int days_ago);
// As a day later: each of these trials has yet to lose its first day, all is vacuumed, and whoever touches a
// page of the ledger next logs it as a whole.
absl::Status LetADayPass(AdminClient& admin, const std::string& trials);
// Sweeps until the leaves of that day are gone.
absl::Status SweepAway(AdminClient& admin, int days_ago);

// LockWatch: the longest time that the master's sweeps have held a table exclusively, by looking again and
// again: from the last look before to the first one after, so rather too long than too short. A lock that
// none of them saw is taken for one of two looks.
class LockWatch {
 public:
  explicit LockWatch(const std::string& database_url);
  ~LockWatch();
  // Ends the watch. Once.
  absl::StatusOr<absl::Duration> Longest();

 private:
  absl::Status Watch(const std::string& database_url);

  std::atomic<bool> stop_ = false;
  absl::Status status_ = absl::OkStatus();
  absl::Duration longest_ = absl::ZeroDuration();
  absl::Duration shortest_look_ = absl::InfiniteDuration();
  std::thread thread_;
};

}  // namespace stepwell::bench
