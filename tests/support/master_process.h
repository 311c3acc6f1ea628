// MasterProcess: a real `stepwell serve` that a test starts, kills, stops and starts again, on the
// same ports each time, so that its clients find it again. Confined to one thread.
//
//   MasterProcess master({.scratch = scratch.path()});
//   ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
//   master.Kill();
//   ASSERT_TRUE(master.StartAndWait({.failpoints = "after_commit_before_ack=exit@9"}));
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {

class MasterProcess {
 public:
  struct Options {
    // Where its data directory ("data"), its log and its ready file lie; passable by other users.
    std::string scratch;
    // Tells several masters in one scratch directory apart.
    std::string name = "master";
    // Empty: a private PostgreSQL in the data directory.
    std::string database_url = {};
    std::vector<std::string> flags = {};
  };
  struct Life {
    // STEPWELL_FAILPOINTS of this start.
    std::string failpoints = {};
    // Soft and hard; 0 = as this process has them.
    int descriptors_max = 0;
    // Path of a `stepwell` of another build; empty: the one beside the running test.
    std::string program = {};
  };

  // Picks ports that are free now; they stay the same for all starts.
  explicit MasterProcess(Options options);

  // REQUIRES: not running.
  void Start(const Life& life);
  // Until the ready file is there. False: `patience` passed, or it died first.
  bool WaitReady(absl::Duration patience = absl::Seconds(60));
  bool StartAndWait(const Life& life, absl::Duration patience = absl::Seconds(60));
  bool StartAndWait() { return StartAndWait(Life()); }
  // SIGTERM; how it ended.
  std::string Stop(absl::Duration patience = absl::Seconds(60));
  void Kill() { child_.Kill(); }
  void Pause() { child_.Signal(SIGSTOP); }
  void Continue() { child_.Signal(SIGCONT); }
  bool running() { return child_.running(); }
  pid_t pid() const { return child_.pid(); }
  // What Wait of the child says once it does not run.
  std::string Ending() { return child_.Wait(absl::ZeroDuration()); }

  // "127.0.0.1:PORT".
  const std::string& grpc_address() const { return grpc_address_; }
  const std::string& http_address() const { return http_address_; }
  // From the ready file; valid once ready.
  const std::string& database_url() const { return database_url_; }
  std::string data_directory() const;
  // Of the private PostgreSQL now, by its postmaster.pid; 0 = none there, or not alive.
  pid_t PostmasterPid() const;

  // "GET path" over HTTP: status line, headers and body; empty when nobody answers in 2 s.
  std::string Get(const std::string& path) const;

  // How often `text` stands in the log of all lives so far.
  int CountInLog(const std::string& text) const;
  // For messages: the last 40 lines.
  std::string LogTail() const;

 private:
  const Options options_;
  std::string grpc_address_;
  std::string http_address_;
  std::string database_url_;
  ChildProcess child_;
};

}  // namespace stepwell::testing
