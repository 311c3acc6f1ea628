// What a child finds that was forked beside busy threads: locks that nobody will give back. It records all the same.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>

#include "absl/time/clock.h"
#include "tests/unit/agent/line/agent_fixture.h"

namespace stepwell::agent {
namespace {

// Its status; nothing where it has not ended within `patience`, and is killed.
std::optional<int> StatusWithin(absl::Duration patience, pid_t child) {
  const absl::Time deadline = absl::Now() + patience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (absl::Now() > deadline) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      return std::nullopt;
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
  return status;
}

class BusyForkTest : public AgentFixture {};

// Function statics with destructors enter libc's list of exit handlers from any thread, and glibc leaves its lock as it was.
TEST_F(BusyForkTest, AgentRule17_AnOpenInAChildForkedWithinAtexitComesBack) {
  std::atomic<bool> is_over{false};
  std::thread busy([&] {
    for (int i = 0; i < 5'000'000 && !is_over.load(); ++i) std::atexit([] {});
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = Record("busy", 0, [] {
      RecordSteps(1);
      if (stepwell_close(0) < 0) _exit(3);
    });
    EXPECT_EQ(StatusWithin(absl::Seconds(20), child), std::optional(0)) << "fork " << i;
    if (HasFailure()) break;
  }
  is_over.store(true);
  busy.join();
}

}  // namespace
}  // namespace stepwell::agent
