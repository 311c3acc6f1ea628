// PrivatePostgres: the PostgreSQL that `stepwell serve` starts for itself when no database URL is
// given. The system's binaries, our data directory, a unix socket with peer authentication, an
// unprivileged user even when started by root, and settings that keep every promise of durability.
// It stands under the store: whoever holds it connects to url(). Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto postgres, PrivatePostgres::Open({.directory = data_dir}));
//   PgConnection::Open({.url = postgres->url()});
//
// One thread, "private-pg", starts the server as a child of this process, watches it, starts it
// again after a crash and stops it. Should this process be killed, the kernel asks the server to
// shut down. Data directory: DIRECTORY/pg; beside it postgres.log, lock, and the socket.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

class PostgresSupervisor;  // private_postgres_supervisor.h
struct PostgresCluster;    // private_postgres_cluster.h

class PrivatePostgres {
 public:
  struct Options {
    // The master's data directory. Created when missing.
    std::string directory = {};
    // Where initdb and postgres are. Empty: $STEPWELL_PG_BINDIR, `pg_config --bindir`, then the
    // newest of /usr/lib/postgresql/*/bin and its like.
    std::string binary_directory = {};
    // Whom the server runs as when we are root. Empty: "postgres".
    std::string user = {};
    // Empty: a quarter of the machine's memory, at most 1 GiB.
    std::int64_t shared_buffers_bytes = 0;
    // kForTests leaves out every fsync: a killed process loses nothing by that, a killed machine
    // everything.
    enum class Durability { kFull, kForTests };
    Durability durability = Durability::kFull;
    // Lines for the server's configuration after ours, for tests and experts.
    std::vector<std::pair<std::string, std::string>> settings = {};
    // How long Open waits for the first readiness (recovery of much WAL takes its time). After it
    // Open succeeds with the state kStarting.
    absl::Duration ready_wait = absl::Seconds(60);
    // After a fast shutdown took this long, an immediate one follows. Nothing committed is lost by
    // either.
    absl::Duration stop_wait = absl::Seconds(30);
  };

  enum class Phase { kStarting, kReady, kDown, kStopped };
  struct State {
    Phase phase = Phase::kStarting;
    // Why it is down, in words for a person: the server's own last message.
    std::string reason;
    // How often the server was started again after a crash.
    int restart_count = 0;
    // 0 when none runs.
    int pid = 0;
  };

  // Blocks until ready. Errors say what to do: kFailedPrecondition for what a person must put
  // right (no binaries, wrong version, unreachable directory, directory in use).
  static absl::StatusOr<std::unique_ptr<PrivatePostgres>> Open(Options options);
  // Stops.
  ~PrivatePostgres();

  // URL of the database "stepwell", for libpq and psql. Valid before and after restarts.
  const std::string& url() const;
  // The same server, another database.
  std::string UrlOf(const std::string& database) const;
  // DIRECTORY/pg, for those who watch the free space of its disk.
  const std::string& data_directory() const;
  State state() const;
  // kUnavailable with the reason when `deadline` passes first.
  absl::Status WaitReady(SteadyTime deadline) const;
  // Fast shutdown: checkpoint, then exit. Blocks; twice is fine. The directory is free afterwards.
  void Stop() ABSL_LOCKS_EXCLUDED(stop_mu_);

 private:
  PrivatePostgres(std::unique_ptr<PostgresCluster> cluster, Options options);

  // One Stop at a time.
  absl::Mutex stop_mu_;
  const std::unique_ptr<PostgresCluster> cluster_;
  const std::string url_;
  std::unique_ptr<PostgresSupervisor> supervisor_;
};

}  // namespace stepwell
