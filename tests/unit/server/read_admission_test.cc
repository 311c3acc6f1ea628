#include "server/read_admission.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "absl/time/clock.h"
#include "base/worker.h"

namespace stepwell {
namespace {

constexpr char kFull[] = "2 reads are under way, limit 2: come again";

TEST(ReadAdmissionTest, OneTooManyIsRefusedWhenItsPatienceEnds) {
  ReadAdmission admission(2);
  const auto first = admission.Enter(absl::ZeroDuration());
  std::optional<ReadAdmission::Ticket> second(*admission.Enter(absl::ZeroDuration()));
  ASSERT_TRUE(first.ok());
  const absl::Time begin = absl::Now();
  const absl::Status refused = admission.Enter(absl::Milliseconds(50)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(), kFull);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(50));
  second.reset();
  EXPECT_TRUE(admission.Enter(absl::ZeroDuration()).ok());
}

TEST(ReadAdmissionTest, WhoWaitsEntersWhenOneLeaves) {
  ReadAdmission admission(1);
  std::optional<ReadAdmission::Ticket> held(*admission.Enter(absl::ZeroDuration()));
  absl::Status entered = absl::UnknownError("did not come back");
  Worker waiter("waiter", [&] { entered = admission.Enter(absl::Seconds(30)).status(); });
  held.reset();
  waiter.Join();
  EXPECT_TRUE(entered.ok()) << entered;
}

TEST(ReadAdmissionTest, NoMoreWaitThanMayRun) {
  ReadAdmission admission(2);
  std::vector<ReadAdmission::Ticket> held;
  for (int i = 0; i < 2; ++i) held.push_back(*admission.Enter(absl::ZeroDuration()));
  std::vector<Worker> waiters;
  for (int i = 0; i < 2; ++i) {
    // The one below may stand in a waiter's place for a moment.
    waiters.emplace_back("waiter", [&] {
      while (!admission.Enter(absl::Seconds(60)).ok()) absl::SleepFor(absl::Milliseconds(1));
    });
  }
  // Both wait once another one is refused at once, however patient it is.
  constexpr absl::Duration kPatience = absl::Seconds(1);
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  absl::Duration took = absl::InfiniteDuration();
  while (took >= kPatience && absl::Now() < deadline) {
    const absl::Time begin = absl::Now();
    EXPECT_EQ(admission.Enter(kPatience).status().message(), kFull);
    took = absl::Now() - begin;
    // Leaves the place to the waiter whose it is.
    if (took >= kPatience) absl::SleepFor(absl::Milliseconds(20));
  }
  EXPECT_LT(took, kPatience);
  held.clear();
  for (Worker& waiter : waiters) waiter.Join();
}

TEST(ReadAdmissionTest, ATicketThatMovedLeavesOnce) {
  ReadAdmission admission(1);
  {
    ReadAdmission::Ticket first = *admission.Enter(absl::ZeroDuration());
    const ReadAdmission::Ticket second(std::move(first));
    EXPECT_FALSE(admission.Enter(absl::ZeroDuration()).ok());
  }
  const auto third = admission.Enter(absl::ZeroDuration());
  EXPECT_TRUE(third.ok());
  EXPECT_FALSE(admission.Enter(absl::ZeroDuration()).ok()) << "left twice";
}

}  // namespace
}  // namespace stepwell
