// PgVacuum: VACUUM or ANALYZE of a few small tables beside everything else, on a thread ("vacuum") and a
// connection of its own, since it may take seconds and its caller, the folder, must not. It waits
// for no lock and never truncates a table's end, so that nobody waits for it either. One run at a
// time. Thread-compatible; ending it cancels the run.
//
//   if (!vacuum.busy()) vacuum.Start({"stepwell.recent_1", "stepwell.recent_ticks_1"});
#pragma once

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "base/worker.h"
#include "storage/pg_connection.h"

namespace stepwell {

class PgVacuum {
 public:
  explicit PgVacuum(PgConnection::Options options);
  ~PgVacuum();

  enum class Task { kVacuum, kAnalyze };
  // REQUIRES: not busy.
  void Start(std::vector<SqlText> tables, Task task = Task::kVacuum) ABSL_LOCKS_EXCLUDED(mu_);
  bool busy() const ABSL_LOCKS_EXCLUDED(mu_);
  // Of the last run that ended.
  absl::Status result() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Run(const std::vector<SqlText>& tables, Task task) ABSL_LOCKS_EXCLUDED(mu_);
  bool NoteBackend(int backend_pid) ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

  const PgConnection::Options options_;
  mutable absl::Mutex mu_;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  int backend_pid_ ABSL_GUARDED_BY(mu_) = 0;  // 0 = not connected
  absl::Status result_ ABSL_GUARDED_BY(mu_);
  Worker worker_;
};

}  // namespace stepwell
