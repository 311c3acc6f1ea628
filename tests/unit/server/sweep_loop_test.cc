// Sweeps: never two at once, added up over calls, and stopped soon.
#include "server/sweep_loop.h"
#include "base/steady_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <climits>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace stepwell {
namespace {

// Removes a sample a call, for so many calls.
class CountedCaps final : public CapsStore {
 public:
  absl::StatusOr<CapsReport> Get(const CapsTarget&, const ProjectFilter&) override {
    return Unused();
  }
  absl::StatusOr<CapsReport> Set(std::int64_t, const CapsTarget&, const ProjectFilter&, const Caps&,
                                 const std::vector<std::string>&) override {
    return Unused();
  }
  absl::StatusOr<CapRemovals> Preview(const PreviewRequest&, const ProjectFilter&) override {
    return Unused();
  }
  absl::StatusOr<SweepResult> Sweep(std::int64_t owner_epoch, const SweepRequest& request,
                                    const ProjectFilter&) override {
    now_us = request.now_us;
    EXPECT_EQ(inside_.exchange(true), false) << "two at once";
    SweepResult result;
    if (owner_epoch != epoch) {
      inside_ = false;
      return absl::AbortedError("another owner");
    }
    if (removes) {
      result.removed.Add({.trial_id = TrialId{7}, .field = "trial_bytes", .sample_count = 1});
    }
    result.advanced = advances;
    if (calls_left == fails_at) result.failed = absl::InternalError("trial 8: no");
    result.leaves_left = 3;
    result.more = --calls_left > 0;
    inside_ = false;
    return result;
  }
  absl::StatusOr<ArchivedTrial> Archive(std::int64_t, const TrialSelector&, const ProjectFilter&,
                                        bool) override {
    return Unused();
  }
  absl::StatusOr<DeletedTrial> Delete(std::int64_t, const TrialSelector&,
                                      const ProjectFilter&) override {
    return Unused();
  }
  absl::StatusOr<TrialCaps> ReadTrialCaps(TrialId) override { return Unused(); }
  absl::Status NoteWindowOver(std::int64_t, TrialId, std::int64_t) override { return Unused(); }

  std::atomic<int> calls_left = 3;
  std::atomic<std::int64_t> now_us = 0;
  std::int64_t epoch = 5;
  bool removes = true;
  bool advances = false;
  int fails_at = INT_MIN;

 private:
  static absl::Status Unused() { return absl::UnimplementedError("not asked by a sweep loop"); }
  std::atomic<bool> inside_ = false;
};

// Somebody sets it.
class SetClock final : public Clock {
 public:
  absl::Time Now() const override {
    return RealClock::Get().Now() + absl::Seconds(ahead_seconds.load());
  }
  absl::Duration Monotonic() const override { return RealClock::Get().Monotonic(); }
  std::atomic<std::int64_t> ahead_seconds = 0;
};

class SweepLoopTest : public ::testing::Test {
 protected:
  SweepLoopTest() {
    state_.SetDatabase(absl::OkStatus());
    state_.BecomeOwner(5, false);
  }
  absl::StatusOr<Swept> SweepNow(SteadyTime deadline = SteadyTime::InfiniteFuture()) {
    return loop_.SweepNow(std::nullopt, kAllProjects, deadline, [] { return false; });
  }

  CountedCaps store_;
  MasterState state_;
  SweepLoop loop_{{.interval = absl::Milliseconds(1)}, {store_, state_, RealClock::Get()}};
};

TEST_F(SweepLoopTest, AddsUpTheCallsOfASweep) {
  const auto swept = SweepNow();
  ASSERT_TRUE(swept.ok()) << swept.status();
  ASSERT_EQ(swept->removed.removals.size(), 1U);
  EXPECT_EQ(swept->removed.removals[0].sample_count, 3);
  EXPECT_EQ(swept->removed.sample_count, 3);
  EXPECT_EQ(swept->leaves_left, 3);
  EXPECT_EQ(loop_.removed_sample_count(), 3);
}

TEST_F(SweepLoopTest, SweepsByItselfAndNeverTwiceAtOnce) {
  store_.calls_left = 200;
  loop_.Start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] { EXPECT_TRUE(SweepNow().ok()); });
  }
  for (std::thread& thread : threads) thread.join();
  const SteadyTime patience = SteadyTime::Now() + absl::Seconds(20);
  while (store_.calls_left > -100 && !patience.HasPassed()) std::this_thread::yield();
  EXPECT_LE(store_.calls_left, -100);
  loop_.Stop();
  EXPECT_TRUE(absl::IsUnavailable(SweepNow().status())) << "it has stopped";
}

TEST_F(SweepLoopTest, AClockThatIsSetForwardMakesNothingOld) {
  SetClock clock;
  SweepLoop loop({}, {store_, state_, clock});
  const auto sweep = [&] {
    store_.calls_left = 1;
    EXPECT_TRUE(loop.SweepNow(std::nullopt, kAllProjects, SteadyTime::InfiniteFuture(),
                              [] { return false; })
                    .ok());
    return absl::FromUnixMicros(store_.now_us) - RealClock::Get().Now();
  };
  EXPECT_LT(absl::AbsDuration(sweep()), absl::Minutes(1));
  clock.ahead_seconds = 400 * 86'400;
  EXPECT_LT(absl::AbsDuration(sweep()), absl::Minutes(1));
  clock.ahead_seconds = 0;
  EXPECT_LT(absl::AbsDuration(sweep()), absl::Minutes(1));
}

TEST_F(SweepLoopTest, SaysWhatWentWhereTheTimeIsOver) {
  store_.calls_left = 1'000'000'000;
  const auto swept = SweepNow(SteadyTime::InfinitePast());
  ASSERT_TRUE(absl::IsDeadlineExceeded(swept.status())) << swept.status();
  EXPECT_NE(swept.status().message().find("so far 1 samples went"), std::string::npos)
      << swept.status();
  EXPECT_EQ(loop_.removed_sample_count(), 1);
  EXPECT_EQ(
      loop_.SweepNow(std::nullopt, kAllProjects, SteadyTime::InfiniteFuture(), [] { return true; })
          .status()
          .code(),
      absl::StatusCode::kCancelled);
}

TEST_F(SweepLoopTest, StopsWhereACallComesNoFurther) {
  store_.calls_left = 100;
  store_.removes = false;
  store_.advances = true;
  ASSERT_TRUE(SweepNow().ok());
  EXPECT_EQ(store_.calls_left, 0) << "it came further each time";
  store_.calls_left = 100;
  store_.advances = false;
  ASSERT_TRUE(SweepNow().ok());
  EXPECT_EQ(store_.calls_left, 99);
}

TEST_F(SweepLoopTest, TellsWhatFailedWhenAllElseIsSwept) {
  store_.fails_at = 2;
  const auto swept = SweepNow();
  EXPECT_EQ(store_.calls_left, 0);
  ASSERT_EQ(swept.status().code(), absl::StatusCode::kInternal) << swept.status();
  EXPECT_NE(swept.status().message().find("3 samples went"), std::string::npos) << swept.status();
  EXPECT_NE(swept.status().message().find("trial 8: no"), std::string::npos) << swept.status();
}

TEST_F(SweepLoopTest, ReportsAnotherOwnerAndRefusesOnAStandby) {
  store_.epoch = 6;
  EXPECT_TRUE(absl::IsAborted(SweepNow().status()));
  EXPECT_TRUE(state_.lost_reported());
  state_.BecomeStandby("another", 1);
  EXPECT_TRUE(absl::IsUnavailable(SweepNow().status()));
}

}  // namespace
}  // namespace stepwell
