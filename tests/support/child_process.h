// ChildProcess: a real program started by a test: its output goes to a file, it can be stopped,
// continued and killed, and it dies with the test. Confined to one thread, the one that starts it:
// the kernel kills the child when that thread ends.
//
//   ChildProcess agent;
//   agent.Start({BuiltProgram("stepwell"), "agent", ...}, {{"STEPWELL_SERVER", address}}, log);
//   agent.Signal(SIGKILL);
//   EXPECT_EQ(agent.Wait(absl::Seconds(10)), "killed by signal 9");
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace stepwell::testing {

// Path of an executable built beside the running test.
std::string BuiltProgram(const std::string& name);

// Asks every 10 ms; false when `patience` passed first.
bool Eventually(const std::function<bool()>& condition, absl::Duration patience);

class ChildProcess {
 public:
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Kills.
  ~ChildProcess();

  // `environment` is added to this process's own, without its STEPWELL_ variables and with
  // STEPWELL_AGENT=off: what the child records starts no agent unless it is told to. stdout and
  // stderr are appended to `log`. Aborts the test program when there is no such executable.
  // REQUIRES: not running.
  void Start(const std::vector<std::string>& words,
             const std::map<std::string, std::string>& environment, const std::string& log);
  // Nothing happens when it does not run.
  void Signal(int signal) const;
  // SIGKILL, and reaped.
  void Kill();
  // How it ended: "exit 0", "killed by signal 9", or "still running" after `patience`.
  std::string Wait(absl::Duration patience);
  bool running();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;  // 0 = not running
  std::string ending_ = "never started";
};

}  // namespace stepwell::testing
