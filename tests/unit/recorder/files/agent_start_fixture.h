// AgentStartTest: what tests of starting an agent share: a root, a program that stands where an agent
// would (programs/agent_probe.cc), and what it saw. The probes end with the root.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <sstream>
#include <string>
#include <thread>

#include "stepwell/recorder.h"
#include "tests/support/places/places.h"
#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"

namespace stepwell::recorder {

inline const std::string kAgentProbe = BuildPlace("bin/agent_probe");

inline bool Eventually(std::chrono::milliseconds patience, const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

class AgentStartTest : public RecorderTest {
 protected:
  // Within RunInChild.
  stepwell_state OpenWith(const std::string& agent) {
    unsetenv("STEPWELL_AGENT");
    stepwell_options options;
    stepwell_options_init(&options);
    options.spool_dir = directory_.path().c_str();
    options.trial = "t";
    options.agent = agent.c_str();
    return stepwell_open(&options);
  }
  stepwell_state OpenWithProbe() { return OpenWith(kAgentProbe); }

  std::string ProbeReport() const { return ReadText(directory_.path() + "/probe"); }
  // The rest of the report's line that begins so; "(none)" without one.
  std::string Reported(const std::string& begin) const {
    std::istringstream report(ProbeReport());
    for (std::string line; std::getline(report, line);) {
      const std::size_t end = line.find_first_of(" \t");
      if (line.substr(0, end) == begin) return line.substr(end + 1);
    }
    return "(none)";
  }
  // 0 = none, as its lock says.
  pid_t HolderOf(const std::string& root) const {
    const int fd = open((root + "/f1/agent.lock").c_str(), O_RDONLY | O_CLOEXEC);
    struct flock asked {};
    asked.l_type = F_WRLCK;
    asked.l_whence = SEEK_SET;
    asked.l_len = 1;
    const bool is_held = fcntl(fd, F_GETLK, &asked) == 0 && asked.l_type != F_UNLCK;
    close(fd);
    return is_held ? asked.l_pid : 0;
  }
  pid_t Holder() const { return HolderOf(directory_.path()); }
  bool AwaitProbe() const {
    return Eventually(std::chrono::seconds(10), [this] { return Holder() != 0; }) &&
           Eventually(std::chrono::seconds(10),
                      [this] { return Reported("pid") == std::to_string(Holder()); });
  }
};

}  // namespace stepwell::recorder
