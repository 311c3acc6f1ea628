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

// Of class 1, both of whose ages are a day.
inline constexpr int kEqualAges = 1;

// A leaf of the past.
struct OldLeaf {
  int days_ago = 0;
  int keep_class = kEqualAges;
};

// Copies what trials like `trials` (a pattern of LIKE) have merged today, with rollups and lines of the
// ledger, to that leaf. REQUIRES: it is not there.
absl::Status MakeOldLeaf(AdminClient& admin, const std::string& trials, const OldLeaf& leaf);
// As a day later: each of these trials has yet to lose its first day, all is vacuumed, and whoever touches a
// page of the ledger next logs it as a whole.
absl::Status LetADayPass(AdminClient& admin, const std::string& trials);
// Sweeps until the leaves of samples, or those of rollups too, of that leaf are gone.
enum class Until { kSamplesGone, kAllGone };
absl::Status SweepAway(AdminClient& admin, const OldLeaf& leaf, Until until = Until::kAllGone);

// From now on rollups of that class are kept for so many days, also those that lie there: as if time had passed.
absl::Status KeepRollupsFor(AdminClient& admin, int keep_class, int days);

// LockWatch: the longest time that sessions of the master's have held a table that others see so that nobody can
// write it, by looking again and again: from the last look before to the first one after, so rather too long than
// too short. A lock that none of them saw is taken for one of two looks.
class LockWatch {
 public:
  // Of sessions whose names are like `sessions` (a pattern of LIKE): stepwell-caps does what sweeps do,
  // stepwell-fold empties rings and attaches leaves.
  LockWatch(const std::string& database_url, const std::string& sessions);
  ~LockWatch();
  // Ends the watch. Once.
  absl::StatusOr<absl::Duration> Longest();
  // Transactions that held one, of those seen. REQUIRES: Longest() was called.
  int seen_count() const { return seen_count_; }

 private:
  absl::Status Watch(const std::string& database_url, const std::string& sessions);

  std::atomic<bool> stop_ = false;
  absl::Status status_ = absl::OkStatus();
  absl::Duration longest_ = absl::ZeroDuration();
  absl::Duration shortest_look_ = absl::InfiniteDuration();
  int seen_count_ = 0;
  std::thread thread_;
};

}  // namespace stepwell::bench
