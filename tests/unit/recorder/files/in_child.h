// Runs a part of a test in a process of its own: with a recorder that nobody has opened yet, with
// mounts of its own, or to be killed. Expectations inside count.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <system_error>
#include <thread>

namespace stepwell::recorder {

inline constexpr int kExitSkipped = 77;

// True when every other thread of this process sleeps.
inline bool OthersSleep() {
  const std::string own = std::to_string(gettid());
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::all_of(begin(tasks), end(tasks), [&](const auto& task) {
    if (task.path().filename() == own) return true;
    std::ifstream file(task.path() / "stat");
    const std::string stat(std::istreambuf_iterator<char>(file), {});
    const auto state = stat.rfind(") ");  // the name before it may hold anything
    return state == std::string::npos || stat[state + 2] == 'S';
  });
}

// The sanitizers' allocator takes no locks over a fork, as malloc does: what a thread of the parent
// held in that instant stays locked in the child for ever.
inline void WaitForOthersToSleep() {
  using Clock = std::chrono::steady_clock;
  const auto patience = Clock::now() + std::chrono::seconds(10);
  while (!OthersSleep() && Clock::now() < patience) std::this_thread::yield();
}

// The wait status of the child that ran `body`.
inline int RunInChild(const std::function<void()>& body) {
  std::fflush(nullptr);
  WaitForOthersToSleep();
  const pid_t child = fork();
  if (child == 0) {
    // Who wants an agent says so.
    setenv("STEPWELL_AGENT", "off", 0);
    body();
    std::fflush(nullptr);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

inline void ExpectInChild(const std::function<void()>& body) {
  const int status = RunInChild(body);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A directory of mode 0700 that goes away with the object, also while an agent writes its last file there.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ = std::filesystem::temp_directory_path() / "stepwell-test-XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) std::abort();
  }
  ~TemporaryDirectory() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    std::error_code why;
    while (std::filesystem::remove_all(path_, why),
           why && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    EXPECT_FALSE(why) << why.message();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace stepwell::recorder
