// What must hold: a trial is never read and folded in bulk at once; a fold never waits; a reader waits for one fold
// at most, however many follow each other.
#include "server/fold_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <random>
#include <thread>
#include <vector>

#include "base/steady_time.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

constexpr TrialId kTrial = static_cast<TrialId>(1);
constexpr TrialId kOther = static_cast<TrialId>(2);

template <typename Condition>
bool Becomes(const Condition& condition) {
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
  while (!condition()) {
    if (deadline.HasPassed()) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(FoldGateTest, NoFoldBeginsWhereSomebodyReads) {
  FoldGate gate;
  {
    const FoldGate::Reader reader = gate.Enter(kTrial);
    EXPECT_FALSE(gate.Begin(kTrial));
    EXPECT_TRUE(gate.Begin(kOther)) << "another trial's reader is nothing to it";
    gate.End(kOther);
    const FoldGate::Reader second = gate.Enter(kTrial);
    EXPECT_FALSE(gate.Begin(kTrial));
  }
  EXPECT_TRUE(gate.Begin(kTrial)) << "they left";
  EXPECT_FALSE(gate.Begin(kTrial)) << "one at a time";
  EXPECT_FALSE(gate.AwaitEnd(kTrial, absl::Milliseconds(1)));
  EXPECT_TRUE(gate.AwaitEnd(kOther, absl::ZeroDuration()));
  gate.End(kTrial);
  EXPECT_TRUE(gate.AwaitEnd(kTrial, absl::ZeroDuration()));
}

TEST(FoldGateTest, AReaderWhoMovesLeavesOnce) {
  FoldGate gate;
  std::optional<FoldGate::Reader> kept;
  {
    FoldGate::Reader reader = gate.Enter(kTrial);
    kept.emplace(std::move(reader));
  }
  EXPECT_FALSE(gate.Begin(kTrial));
  kept.reset();
  EXPECT_TRUE(gate.Begin(kTrial));
}

TEST(FoldGateTest, WhoComesMeanwhileWaitsAndHasItsTurnBeforeTheNextFold) {
  FoldGate gate;
  for (int round = 0; round < 100; ++round) {
    ASSERT_TRUE(gate.Begin(kTrial));
    std::atomic<bool> there = false, entered = false, may_leave = false;
    std::thread reader([&] {
      there = true;
      const FoldGate::Reader held = gate.Enter(kTrial);
      entered = true;
      EXPECT_TRUE(Becomes([&] { return may_leave.load(); }));
    });
    EXPECT_TRUE(Becomes([&] { return there.load(); }));
    for (int i = 0; i < 100; ++i) std::this_thread::yield();
    EXPECT_FALSE(entered);
    gate.End(kTrial);
    // Until it waits it is not there, and others may begin.
    EXPECT_TRUE(Becomes([&] {
      if (!entered && gate.Begin(kTrial)) {
        for (int i = 0; i < 10; ++i) std::this_thread::yield();
        gate.End(kTrial);
      }
      return entered.load();
    }));
    EXPECT_FALSE(gate.Begin(kTrial));
    may_leave = true;
    reader.join();
  }
}

TEST(FoldGateTest, OpenEndsFoldsAndLetsReadersIn) {
  FoldGate gate;
  ASSERT_TRUE(gate.Begin(kTrial));
  std::atomic<bool> entered = false;
  std::thread reader([&] {
    const FoldGate::Reader held = gate.Enter(kTrial);
    entered = true;
  });
  gate.Open();
  reader.join();
  EXPECT_TRUE(entered);
  gate.End(kTrial);  // of a fold that Open ended already
  EXPECT_TRUE(gate.Begin(kTrial));
  gate.End(kTrial);
}

// Threads that read and one that folds, on trials at random: what each finds, it may find.
TEST(FoldGateTest, ReadersAndFoldsNeverMeet) {
  FoldGate gate;
  constexpr int kTrials = 3;
  std::atomic<int> readers[kTrials] = {};
  std::atomic<bool> folded[kTrials] = {};
  std::atomic<bool> stop = false;
  std::atomic<int> reads = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 3; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(testing::TestSeed() + seed);
      while (!stop) {
        const int trial = static_cast<int>(random() % kTrials);
        const FoldGate::Reader held = gate.Enter(static_cast<TrialId>(trial));
        readers[trial] += 1;
        EXPECT_FALSE(folded[trial]);
        readers[trial] -= 1;
        ++reads;
        if (random() % 4 == 0) std::this_thread::yield();
      }
    });
  }
  std::mt19937 random(testing::TestSeed());
  int folds = 0;
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(60);
  while ((folds < 2000 || reads < 2000) && !deadline.HasPassed()) {
    const int trial = static_cast<int>(random() % kTrials);
    if (!gate.Begin(static_cast<TrialId>(trial))) {
      std::this_thread::yield();
      continue;
    }
    ++folds;
    folded[trial] = true;
    EXPECT_EQ(readers[trial], 0);
    std::this_thread::yield();
    folded[trial] = false;
    gate.End(static_cast<TrialId>(trial));
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(folds, 2000);
  EXPECT_GE(reads, 2000);
}

}  // namespace
}  // namespace stepwell
