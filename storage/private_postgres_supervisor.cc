#include "storage/private_postgres_supervisor.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/pg_connection.h"
#include "storage/private_postgres_cluster.h"
#include "storage/private_postgres_files.h"

namespace stepwell {
namespace {

constexpr absl::Duration kReadyPoll = absl::Milliseconds(10);
constexpr absl::Duration kReadyPollLongest = absl::Milliseconds(250);
constexpr absl::Duration kWatchPoll = absl::Seconds(1);
constexpr absl::Duration kLogPoll = absl::Seconds(30);  // how often the log's size is looked at
constexpr absl::Duration kRestartFirst = absl::Seconds(1);
constexpr absl::Duration kRestartLongest = absl::Seconds(30);
// A server that lived this long is healthy: its next crash is a first one again.
constexpr absl::Duration kHealthyAfter = absl::Seconds(60);
constexpr absl::Duration kSharedMemoryWait = absl::Seconds(10);

}  // namespace

absl::Duration RestartDelay(int crash_count) {
  if (crash_count <= 1) return absl::ZeroDuration();
  return std::min(kRestartLongest, kRestartFirst * (1 << std::min(crash_count - 2, 10)));
}

PostgresSupervisor::PostgresSupervisor(const PostgresCluster& cluster,
                                       const PrivatePostgres::Options& options)
    : cluster_(cluster),
      stop_wait_(options.stop_wait),
      stop_event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SetPhase(Phase::kStarting, 0);
  worker_ = Worker("private-pg", [this] { Run(); });
}

void PostgresSupervisor::Stop() {
  const std::uint64_t one = 1;
  (void)!write(stop_event_.get(), &one, sizeof(one));
  worker_.Join();
}

PrivatePostgres::State PostgresSupervisor::state() const {
  absl::MutexLock lock(&mu_);
  return state_;
}

void PostgresSupervisor::SetPhase(Phase phase, int pid, std::string reason) {
  absl::MutexLock lock(&mu_);
  state_.phase = phase;
  state_.pid = pid;
  state_.reason = std::move(reason);
}

absl::Status PostgresSupervisor::WaitReady(SteadyTime deadline) const {
  absl::MutexLock lock(&mu_);
  const auto ready = [this]()
                         ABSL_SHARED_LOCKS_REQUIRED(mu_) { return state_.phase == Phase::kReady; };
  if (mu_.AwaitWithTimeout(absl::Condition(&ready), deadline.Left())) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("private PostgreSQL is not ready: ", state_.reason));
}

absl::Status PostgresSupervisor::WaitFirst(SteadyTime deadline) const {
  absl::MutexLock lock(&mu_);
  const auto settled = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return first_.has_value(); };
  mu_.AwaitWithTimeout(absl::Condition(&settled), deadline.Left());
  return first_.value_or(absl::OkStatus());
}

void PostgresSupervisor::SettleFirst(absl::Status status) {
  absl::MutexLock lock(&mu_);
  if (!first_.has_value()) first_ = std::move(status);
}

void PostgresSupervisor::Run() {
  int crash_count = 0;
  while (true) {
    absl::StatusOr<Server> server = AdoptOrStart();
    SteadyTime ready_since = SteadyTime::InfiniteFuture();
    Event event = Event::kExited;
    std::string reason = server.ok() ? "" : std::string(server.status().message());
    if (server.ok()) {
      if (WaitUntilReady(*server)) {
        ready_since = SteadyTime::Now();
        SetPhase(Phase::kReady, server->pid);
        SettleFirst(absl::OkStatus());
        log::Info("private_postgres_ready", {{"pid", server->pid}});
      }
      event = Watch(*server);
      if (event == Event::kStopAsked) {
        End(*server);
        break;
      }
      reason = WhyEnded(*server);
    }
    if (SteadyTime::Now() - ready_since > kHealthyAfter) crash_count = 0;
    const absl::Duration delay = RestartDelay(++crash_count);
    SetPhase(Phase::kDown, 0, reason);
    log::Warning("private_postgres_down",
                 {{"reason", reason}, {"restart_in_ms", absl::ToInt64Milliseconds(delay)}});
    // Tried once more before it has failed: what a master that was killed had just begun to start holds the
    // lock of the directory before it can be seen there, and is adopted or ended by the second try.
    if (crash_count > 1) {
      SettleFirst(absl::UnavailableError(
          absl::StrCat("private PostgreSQL did not start: ", reason, "; see ", cluster_.log_file)));
    }
    if (WaitEvent({}, delay) == Event::kStopAsked) break;
    // The reason stays until it is ready: a person who looks now wants to know it.
    SetPhase(Phase::kStarting, 0, reason);
    absl::MutexLock lock(&mu_);
    ++state_.restart_count;
  }
  SetPhase(Phase::kStopped, 0, "stopped");
}

absl::StatusOr<PostgresSupervisor::Server> PostgresSupervisor::AdoptOrStart() {
  const PidFile left = ReadPidFile(cluster_.data_directory);
  if (!IsServerOf(left.pid, cluster_.data_directory)) return StartOwn();
  Server orphan;
  orphan.pid = left.pid;
  orphan.pidfd = OpenPidfd(left.pid);
  orphan.log_offset = LogBytes(cluster_);
  if (TryConnect().ok()) {
    log::Info("private_postgres_adopted", {{"pid", orphan.pid}});
    return orphan;
  }
  End(orphan);
  return StartOwn();
}

absl::StatusOr<PostgresSupervisor::Server> PostgresSupervisor::StartOwn() {
  // Backends of a postmaster that was killed hold its shared memory until they notice; a new one
  // would refuse to start beside them.
  const SteadyTime deadline = SteadyTime::Now() + kSharedMemoryWait;
  while (SharedMemoryInUse(ReadPidFile(cluster_.data_directory)) && !deadline.HasPassed()) {
    if (WaitEvent({}, kReadyPoll) == Event::kStopAsked) break;
  }
  TrimLog(cluster_);
  Server server;
  server.is_child = true;
  server.log_offset = LogBytes(cluster_);
  STEPWELL_ASSIGN_OR_RETURN(server.pid,
                            StartServer({cluster_.binaries.postgres, "-D", cluster_.data_directory},
                                        cluster_.account, cluster_.log_file, "/"));
  server.pidfd = OpenPidfd(server.pid);
  return server;
}

bool PostgresSupervisor::WaitUntilReady(Server& server) {
  absl::Duration pause = kReadyPoll;
  while (true) {
    const absl::Status status = TryConnect();
    if (status.ok()) return true;
    SetPhase(Phase::kStarting, server.pid, std::string(status.message()));
    if (WaitEvent(server, pause) != Event::kTimeout) return false;
    // Each try during a long recovery is a line in the server's log.
    pause = std::min(pause * 1.5, kReadyPollLongest);
  }
}

absl::Status PostgresSupervisor::TryConnect() const {
  STEPWELL_ASSIGN_OR_RETURN(auto connection,
                            PgConnection::Open({.url = cluster_.Url("postgres"),
                                                .application_name = "stepwell supervisor",
                                                .connect_timeout = absl::Seconds(2),
                                                .statement_timeout = absl::Seconds(5),
                                                .reply_timeout = absl::Seconds(10)}));
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult found,
      connection->Exec("select 1 from pg_database where datname = $1", {kPrivateDatabase}));
  if (found.row_count() == 1) return absl::OkStatus();
  return connection->ExecScript(SqlCat({"create database ", SqlName(kPrivateDatabase)}));
}

PostgresSupervisor::Event PostgresSupervisor::Watch(Server& server) {
  SteadyTime next_trim = SteadyTime::Now() + kLogPoll;
  bool is_hurried = false;
  while (true) {
    const Event event = WaitEvent(server, kWatchPoll);
    // An adopted one is not our child, unless we are the init of a container.
    if (event == Event::kExited) waitpid(server.pid, &server.wait_status, 0);
    if (event != Event::kTimeout) return event;
    if (!is_hurried && ReadPidFile(cluster_.data_directory).is_stopping) {
      // A smart shutdown lets nobody in and waits for our own sessions, which never end.
      log::Warning("private_postgres_stopped_by_others", {{"pid", server.pid}});
      kill(server.pid, SIGINT);
      is_hurried = true;
    }
    if (!next_trim.HasPassed()) continue;
    TrimLog(cluster_);
    next_trim = SteadyTime::Now() + kLogPoll;
  }
}

PostgresSupervisor::Event PostgresSupervisor::WaitEvent(const Server& server,
                                                        absl::Duration timeout) const {
  pollfd watched[2] = {{.fd = stop_event_.get(), .events = POLLIN, .revents = 0},
                       {.fd = server.pidfd.get(), .events = POLLIN, .revents = 0}};
  const int ready = poll(watched, 2, static_cast<int>(absl::ToInt64Milliseconds(timeout)));
  if (ready > 0 && watched[0].revents != 0) return Event::kStopAsked;
  if (ready > 0 && watched[1].revents != 0) return Event::kExited;
  return Event::kTimeout;
}

bool PostgresSupervisor::WaitExit(Server& server, absl::Duration timeout) const {
  pollfd watched{.fd = server.pidfd.get(), .events = POLLIN, .revents = 0};
  if (poll(&watched, 1, static_cast<int>(absl::ToInt64Milliseconds(timeout))) <= 0) return false;
  waitpid(server.pid, &server.wait_status, 0);
  return true;
}

std::string PostgresSupervisor::WhyEnded(const Server& server) const {
  const std::string words = LastWords(cluster_, server.log_offset);
  if (!words.empty()) return words;
  if (!server.is_child) return "it ended";
  if (WIFSIGNALED(server.wait_status)) {
    return absl::StrCat("killed by signal ", WTERMSIG(server.wait_status));
  }
  return absl::StrCat("it exited with status ", WEXITSTATUS(server.wait_status), "; see ",
                      cluster_.log_file);
}

void PostgresSupervisor::End(Server& server) {
  if (server.pidfd.get() < 0) return;
  // Fast shutdown; then immediate, which the next start recovers from; a server that ignores both
  // hangs in the kernel, and SIGKILL is all that is left.
  kill(server.pid, SIGINT);
  kill(server.pid, SIGCONT);  // a stopped process takes no other signal
  if (WaitExit(server, stop_wait_)) return;
  log::Warning("private_postgres_slow_stop", {{"pid", server.pid}});
  kill(server.pid, SIGQUIT);
  if (WaitExit(server, absl::Seconds(10))) return;
  kill(server.pid, SIGKILL);
  WaitExit(server, absl::Seconds(5));
}

}  // namespace stepwell
