#include "server/read_admission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <string>
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

TEST(ReadAdmissionTest, OnePayerHasHalfOfThePlacesAndOthersTheRest) {
  ReadAdmission admission(4);
  std::list<ReadAdmission::Ticket> held;
  const auto enter = [&](const std::string& payer) {
    auto ticket = admission.Enter(absl::ZeroDuration(), payer);
    if (ticket.ok()) held.push_back(*std::move(ticket));
    return ticket.status();
  };
  EXPECT_TRUE(enter("greedy").ok());
  EXPECT_TRUE(enter("greedy").ok());
  EXPECT_EQ(enter("greedy").message(), "2 reads of this token are under way, limit 2: come again");
  EXPECT_TRUE(enter("other").ok());
  EXPECT_TRUE(enter("").ok());
  EXPECT_EQ(enter("third").message(), "4 reads are under way, limit 4: come again");
  held.erase(held.begin());
  EXPECT_TRUE(enter("third").ok());
  EXPECT_FALSE(enter("greedy").ok()) << "all are taken";
  held.clear();
  EXPECT_TRUE(enter("greedy").ok());
}

TEST(ReadAdmissionTest, WhoRestsLeavesItsShareToItsOwnOthers) {
  ReadAdmission admission(2);
  auto first = *admission.Enter(absl::ZeroDuration(), "one");
  first.RestFor([&] {
    auto second = admission.Enter(absl::ZeroDuration(), "one");
    EXPECT_TRUE(second.ok());
    EXPECT_FALSE(admission.Enter(absl::ZeroDuration(), "one").ok());
  });
  EXPECT_FALSE(admission.Enter(absl::ZeroDuration(), "one").ok());
  EXPECT_TRUE(admission.Enter(absl::ZeroDuration(), "other").ok());
}

TEST(ReadAdmissionTest, OfWhoWaitsOnePayersAreHalf) {
  ReadAdmission admission(2);
  std::optional<ReadAdmission::Ticket> held(*admission.Enter(absl::ZeroDuration(), "one"));
  std::optional<ReadAdmission::Ticket> other(*admission.Enter(absl::ZeroDuration(), "other"));
  absl::Status entered = absl::UnknownError("did not come back");
  std::atomic<bool> is_asking = false;
  Worker waiter("waiter", [&] {
    is_asking = true;
    entered = admission.Enter(absl::Seconds(30), "one").status();
  });
  // The first one waits; another of its payer is refused at once, however patient.
  const absl::Time end = absl::Now() + absl::Seconds(30);
  absl::Duration took = absl::InfiniteDuration();
  while (took > absl::Seconds(1) && absl::Now() < end) {
    if (!is_asking) continue;
    const absl::Time begin = absl::Now();
    EXPECT_FALSE(admission.Enter(absl::Milliseconds(1500), "one").ok());
    took = absl::Now() - begin;
  }
  EXPECT_LT(took, absl::Seconds(1));
  held.reset();
  waiter.Join();
  EXPECT_TRUE(entered.ok()) << entered;
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
