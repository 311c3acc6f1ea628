// PostgresSupervisor: the thread that starts the private server, watches it, restarts it after a
// crash and stops it. Thread-safe. The server is this thread's child, because the kernel sends a
// parent's death signal when the starting *thread* ends.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"
#include "base/worker.h"
#include "storage/private_postgres.h"
#include "storage/private_postgres_process.h"

namespace stepwell {

// How long a server that crashed for the n-th time in a row waits for its start: 0, 0, 1, 2, 4 ...
// 30 s. n = 0 is the first start. Pure.
absl::Duration RestartDelay(int crash_count);

class PostgresSupervisor {
 public:
  // Starts the thread. `cluster` outlives this.
  PostgresSupervisor(const PostgresCluster& cluster, const PrivatePostgres::Options& options);
  ~PostgresSupervisor() { Stop(); }

  PrivatePostgres::State state() const ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status WaitReady(SteadyTime deadline) const ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for the end of the first start: OK when ready, or still starting at `deadline`.
  absl::Status WaitFirst(SteadyTime deadline) const ABSL_LOCKS_EXCLUDED(mu_);
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Phase = PrivatePostgres::Phase;
  struct Server {
    pid_t pid = 0;
    OwnedFd pidfd;
    bool is_child = false;
    // Where the log ended before it started.
    std::int64_t log_offset = 0;
    // As waitpid gives it, once it has exited.
    int wait_status = 0;
  };
  enum class Event { kTimeout, kExited, kStopAsked };

  void Run();
  // Takes over a server that outlived an earlier master, or starts one.
  absl::StatusOr<Server> AdoptOrStart();
  absl::StatusOr<Server> StartOwn();
  // Signals a server that does not answer until it is gone.
  void End(Server& server);
  bool WaitUntilReady(Server& server);
  // Watches until it exits or Stop is called.
  Event Watch(Server& server);
  Event WaitEvent(const Server& server, absl::Duration timeout) const;
  std::string WhyEnded(const Server& server) const;
  bool WaitExit(Server& server, absl::Duration timeout) const;
  void SetPhase(Phase phase, int pid, std::string reason = {}) ABSL_LOCKS_EXCLUDED(mu_);
  // Notes the outcome of the first start; later calls change nothing.
  void SettleFirst(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status TryConnect() const;

  const PostgresCluster& cluster_;
  const absl::Duration stop_wait_;
  // Readable once Stop was called.
  const OwnedFd stop_event_;

  mutable absl::Mutex mu_;
  PrivatePostgres::State state_ ABSL_GUARDED_BY(mu_);
  // How the first start ended, once it has.
  std::optional<absl::Status> first_ ABSL_GUARDED_BY(mu_);

  Worker worker_;
};

}  // namespace stepwell
