// MasterState: what this master is right now: its role, the epoch under which it owns the database,
// whether the database answers. Everything that must not outlive an epoch asks here. Thread-safe.
//
//   if (!state.IfOwner(epoch, [&] { heads.Add(chunks); })) return;  // lost meanwhile
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/uuid.h"

namespace stepwell {

enum class MasterRole { kStarting, kStandby, kOwner, kDraining };

// Of a disk of the private PostgreSQL; all 0 = not known.
struct DiskRoom {
  // For an unprivileged process.
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

class MasterState {
 public:
  struct Snapshot {
    MasterRole role = MasterRole::kStarting;
    // The journal of some trials is still being replayed; ingest is open.
    bool recovering = false;
    std::int64_t epoch = 0;  // 0 = not owner
    bool database_up = false;
    std::string database_error;
    // While standby: who owns it, and how old its renewal is.
    std::string owner_id;
    double owner_age_seconds = 0;

    // Why nothing more is taken although all else is well: the disk is nearly full. Empty = it is not.
    std::string disk_error;
    // That of the data and that of the WAL, which may be the same.
    DiskRoom data_disk;
    DiskRoom wal_disk;

    // Reads, folds and what is under way are served.
    bool ready() const { return role == MasterRole::kOwner && database_up; }
    // And more may come.
    bool accepting() const { return ready() && disk_error.empty(); }
    // Of the disk that has least; 0 = not known.
    std::int64_t disk_free_bytes() const;
    // Why not, in words: "standby: master-a owns the database, renewed 1.2 s ago".
    std::string reason() const;
    // The same for whoever asks, without a token: of a standby not who the owner is.
    std::string public_reason() const;
    // owner, standby or recovering, as GetStatus says it.
    std::string role_name() const;
  };

  Snapshot Get() const ABSL_LOCKS_EXCLUDED(mu_);
  std::int64_t epoch() const ABSL_LOCKS_EXCLUDED(mu_);
  // The same for reads: 0 once somebody found that the database has another owner, before the loop has looked after it.
  std::int64_t undoubted_epoch() const ABSL_LOCKS_EXCLUDED(mu_);

  // Of the database, as this master saw it last: what clients are told to know it by.
  Uuid incarnation() const ABSL_LOCKS_EXCLUDED(mu_);
  void SetIncarnation(const Uuid& incarnation) ABSL_LOCKS_EXCLUDED(mu_);

  // OK clears the error; any other status says that the database does not answer.
  void SetDatabase(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // Empty clears it.
  void SetDisk(const std::string& error, DiskRoom data, DiskRoom wal) ABSL_LOCKS_EXCLUDED(mu_);
  void BecomeStandby(const std::string& owner_id, double owner_age_seconds)
      ABSL_LOCKS_EXCLUDED(mu_);
  void BecomeOwner(std::int64_t epoch, bool recovering) ABSL_LOCKS_EXCLUDED(mu_);
  void RecoveryDone(std::int64_t epoch) ABSL_LOCKS_EXCLUDED(mu_);
  void StartDraining() ABSL_LOCKS_EXCLUDED(mu_);

  // Runs `body` while the ownership under `epoch` cannot change; false if it already has. `body`
  // works in memory only and takes no part of this class.
  bool IfOwner(std::int64_t epoch, const std::function<void()>& body) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Ends the ownership under `epoch` and runs `body` before anyone can act on the next one.
  bool EndOwnership(std::int64_t epoch, const std::function<void()>& body) ABSL_LOCKS_EXCLUDED(mu_);

  // Somebody found that the database has another owner: OwnershipLoop looks after it.
  void ReportLost(std::int64_t epoch) ABSL_LOCKS_EXCLUDED(mu_);
  bool lost_reported() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable absl::Mutex mu_;
  Snapshot now_ ABSL_GUARDED_BY(mu_);
  Uuid incarnation_ ABSL_GUARDED_BY(mu_) = {};
  std::int64_t lost_epoch_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell
