// The recorder's one thread beside the trial's: what it is to the trial, in a process of its own.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/unit/recorder/files/in_child.h"
#include "tests/unit/recorder/files/recorder_fixture.h"

namespace stepwell::recorder {
namespace {

// All but SIGKILL and SIGSTOP, which nobody can block, and the C library's own two.
constexpr char kAllBlocked[] = "fffffffe7ffbfeff";

// What each other thread of this process blocks, as the kernel says it.
std::vector<std::string> MasksOfOthers() {
  std::vector<std::string> masks;
  const std::string own = std::to_string(gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == own) continue;
    std::ifstream file(task.path() / "status");
    std::string word;
    while (file >> word && word != "SigBlk:") {
    }
    if (file >> word) masks.push_back(word);
  }
  return masks;
}

// A thread that is being made, or joined, is for an instant something else.
bool AwaitMasks(const std::vector<std::string>& masks) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (MasksOfOthers() != masks) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST_F(RecorderTest, AgentRule08_ItsOneThreadTakesNoSignalAndEndsWithTheRecorder) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    Scoped("a");
    EXPECT_TRUE(AwaitMasks({kAllBlocked})) << testing::PrintToString(MasksOfOthers());
    stepwell_close(0);
    EXPECT_TRUE(AwaitMasks({})) << testing::PrintToString(MasksOfOthers());
  });
}

// fork() leaves it behind: a child that never records has none.
TEST_F(RecorderTest, AgentRule08_AForkedChildGetsItsThreadWhenItRecords) {
  ExpectInChild([this] {
    ASSERT_EQ(Open(), STEPWELL_RECORDING);
    ASSERT_TRUE(AwaitMasks({kAllBlocked}));
    ExpectInChild([] {
      EXPECT_EQ(MasksOfOthers(), std::vector<std::string>());
      Scoped("in the child");
      EXPECT_TRUE(AwaitMasks({kAllBlocked})) << testing::PrintToString(MasksOfOthers());
    });
  });
}

}  // namespace
}  // namespace stepwell::recorder
