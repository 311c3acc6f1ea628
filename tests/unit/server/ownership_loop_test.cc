// The loop that takes and renews the ownership: on a store in memory, with streams, heads and registry as they are.
#include "server/ownership_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "server/trial_keeper.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

class OwnershipLoopTest : public IngestStreamTest {
 protected:
  // What of the one before is still there as the next one is told of.
  struct Met {
    std::int64_t epoch = -1;
    Uuid incarnation = {};
  };

  OwnershipLoopTest() : keeper_(store_, registry_, RealClock::Get()) {
    state_.SetIncarnation(*store_.ReadIncarnation());
    // A start begins with no ownership.
    state_.EndOwnership(state_.epoch(), [] {});
  }

  // Until it owns the database.
  void Start(absl::Duration renew_interval) {
    loop_.emplace(OwnershipLoop::Options{.master_id = "master-a",
                                         .address = "here",
                                         .renew_interval = renew_interval,
                                         .standby_interval = absl::Milliseconds(20)},
                  OwnershipLoop::Parts{.recovery = Recovery(),
                                       .queue = queue_,
                                       .trial_keeper = keeper_,
                                       .director = director_,
                                       .on_change = [] {},
                                       .on_another_database =
                                           [this] {
                                             met_ = {state_.epoch(), state_.incarnation()};
                                           }});
    loop_->Start();
    ASSERT_TRUE(Await([&] { return state_.Get().ready(); }));
  }

  static bool Await(const std::function<bool()>& what) {
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(5);
    while (!what()) {
      if (deadline.HasPassed()) return false;
      absl::SleepFor(absl::Milliseconds(5));
    }
    return true;
  }

  TrialKeeper keeper_;
  Met met_;  // the loop's, until it has stopped
  std::optional<OwnershipLoop> loop_;
};

TEST_F(OwnershipLoopTest, AnEpochWhoseLookFailedIsTheNextClaimsLast) {
  // The failing look is that of the claim, not of a renewal before.
  Start(absl::Hours(1));
  const std::int64_t first = state_.epoch();
  store_.FailNextLook(absl::DeadlineExceededError("it hangs"));
  state_.ReportLost(first);
  // Not after the ten seconds after which anybody may take it.
  ASSERT_TRUE(Await([&] { return state_.epoch() > first && state_.Get().ready(); }));
}

TEST_F(OwnershipLoopTest, ARenewalWhoseLookFailedIsTheDatabasesFaultAndLosesNothing) {
  Start(absl::Milliseconds(20));
  const std::int64_t first = state_.epoch();
  ::testing::internal::CaptureStderr();
  store_.FailNextLook(absl::DeadlineExceededError("it hangs"));
  const bool is_back = Await([&] { return !state_.Get().database_up; }) &&
                       Await([&] { return state_.Get().ready(); });
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("it hangs"));
  EXPECT_TRUE(is_back);
  EXPECT_EQ(state_.epoch(), first);
}

TEST_F(OwnershipLoopTest, AnotherDatabaseIsMetOnceAllOfTheOneBeforeHasEnded) {
  Start(absl::Milliseconds(20));
  const std::int64_t first = state_.epoch();
  const auto stream = NewStream();
  Begin(*stream, writer_);
  store_.RenewIncarnation();
  ASSERT_TRUE(Await([&] { return state_.epoch() > first; }));
  EXPECT_THAT(stream->end_status().message(), HasSubstr("the database is another one"));
  EXPECT_EQ(state_.incarnation(), *store_.ReadIncarnation());
  loop_->Stop();
  EXPECT_EQ(met_.epoch, 0) << "heads were of the one before, and still read";
  EXPECT_EQ(met_.incarnation, state_.incarnation());
}

}  // namespace
}  // namespace stepwell
