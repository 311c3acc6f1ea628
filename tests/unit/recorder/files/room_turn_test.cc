#include "client/recorder/src/room_turn.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <atomic>
#include <new>
#include <vector>

#include "client/recorder/src/room_pace.h"
#include "tests/unit/recorder/files/in_child.h"

namespace stepwell::recorder {
namespace {

constexpr std::uint64_t kNoWaitNs = 0;
constexpr std::uint64_t kLongNs = 60'000'000'000;

// Of all processes of a test.
struct Shared {
  std::atomic<int> inside{0};
  std::atomic<int> met{0};
  std::atomic<int> stage{0};
};

class RoomTurnTest : public testing::Test {
 protected:
  RoomTurnTest()
      : shared_(new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Shared) {}
  ~RoomTurnTest() override { munmap(shared_, sizeof(Shared)); }

  bool IsFree() const { return RoomTurn(directory_.path(), kNoWaitNs).is_taken(); }
  static pid_t Fork(const std::function<void()>& body) {
    WaitForOthersToSleep();
    const pid_t child = fork();
    if (child != 0) return child;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  static void ExpectEnd(pid_t child) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  void AwaitStage(int stage) const {
    while (shared_->stage < stage) sched_yield();
  }

  TemporaryDirectory directory_;
  Shared* const shared_;
};

TEST_F(RoomTurnTest, OneOfEightProcessesHasItAtATime) {
  std::vector<pid_t> children;
  for (int i = 0; i < 8; ++i) {
    children.push_back(Fork([&] {
      for (int n = 0; n < 20; ++n) {
        const RoomTurn turn(directory_.path(), kLongNs);
        EXPECT_TRUE(turn.is_taken());
        if (++shared_->inside > 1) ++shared_->met;
        sched_yield();
        --shared_->inside;
      }
    }));
  }
  for (const pid_t child : children) ExpectEnd(child);
  EXPECT_EQ(shared_->met, 0);
}

TEST_F(RoomTurnTest, WhoKeepsItHoldsUpNobodyForEver) {
  const RoomTurn kept(directory_.path());
  ASSERT_TRUE(kept.is_taken());
  EXPECT_FALSE(RoomTurn(directory_.path(), 1'000'000).is_taken());
}

TEST_F(RoomTurnTest, ADirectoryThatIsGoneIsNoTurn) {
  EXPECT_FALSE(RoomTurn(directory_.path() + "/gone").is_taken());
}

// As a loader's worker that is forked while a ring is made, and lives for hours.
TEST_F(RoomTurnTest, AChildThatWasForkedMeanwhileDoesNotKeepIt) {
  pid_t child = 0;
  {
    const RoomTurn turn(directory_.path());
    ASSERT_TRUE(turn.is_taken());
    child = Fork([&] { AwaitStage(1); });
    EXPECT_FALSE(IsFree());
  }
  EXPECT_TRUE(IsFree());
  shared_->stage = 1;
  ExpectEnd(child);
}

TEST_F(RoomTurnTest, OneThatWasKilledGivesItBack) {
  const pid_t child = Fork([&] {
    const RoomTurn turn(directory_.path());
    shared_->stage = 1;
    for (;;) pause();
  });
  AwaitStage(1);
  EXPECT_FALSE(IsFree());
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(IsFree());
}

TEST(RoomPaceTest, WhatWasTooLittleIsLookedForMoreAndMoreRarely) {
  constexpr std::uint64_t kMs = 1'000'000;
  RoomPace pace;
  EXPECT_FALSE(pace.IsKnownTooLittle(100, 0));
  pace.Saw(399, 100, 1 * kMs);
  const struct {
    const char* name;
    std::uint64_t now_ms;
    std::size_t bytes;
    bool is_known;
  } rows[] = {
      {"at once", 1, 100, true},
      {"at once, for a smaller one that fits", 1, 99, false},
      {"within the pause", 250, 100, true},
      {"after it", 251, 100, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(pace.IsKnownTooLittle(row.bytes, row.now_ms * kMs), row.is_known);
  }
  pace.Saw(0, 100, 300 * kMs);
  EXPECT_TRUE(pace.IsKnownTooLittle(1, 799 * kMs));
  EXPECT_FALSE(pace.IsKnownTooLittle(1, 800 * kMs));
  for (int n = 0; n < 20; ++n) pace.Saw(0, 100, 1000 * kMs);
  EXPECT_TRUE(pace.IsKnownTooLittle(100, 2999 * kMs));
  EXPECT_FALSE(pace.IsKnownTooLittle(100, 3000 * kMs));
  pace.Saw(400, 100, 3000 * kMs);
  EXPECT_FALSE(pace.IsKnownTooLittle(1000, 3000 * kMs));
  pace.Saw(0, 100, 3000 * kMs);
  EXPECT_FALSE(pace.IsKnownTooLittle(100, 3250 * kMs));
}

}  // namespace
}  // namespace stepwell::recorder
