#include "server/read_admission.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
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

TEST(ReadAdmissionTest, WhileSamplesWaitAQuarterIsLetIn) {
  std::atomic<bool> writers_wait = true;
  ReadAdmission admission(8, [&] { return writers_wait.load(); });
  std::vector<ReadAdmission::Ticket> held;
  for (int i = 0; i < 2; ++i) held.push_back(*admission.Enter(absl::ZeroDuration()));
  const absl::Status refused = admission.Enter(absl::Milliseconds(50)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(refused.message(),
            "2 reads are under way, limit 2 while samples wait for their commit: come again");
  // Nobody leaves, and nobody says that it is over.
  absl::Status entered = absl::UnknownError("did not come back");
  Worker waiter("waiter", [&] { entered = admission.Enter(absl::Seconds(30)).status(); });
  writers_wait = false;
  waiter.Join();
  EXPECT_TRUE(entered.ok()) << entered;
  // Those that were let in before stay.
  for (int i = 0; i < 6; ++i) held.push_back(*admission.Enter(absl::ZeroDuration()));
  writers_wait = true;
  bool rested = false;
  held.front().RestFor([&] { rested = true; });
  EXPECT_TRUE(rested);
  EXPECT_EQ(admission.Enter(absl::ZeroDuration()).status().message(),
            "8 reads are under way, limit 2 while samples wait for their commit: come again");
}

TEST(ReadAdmissionTest, WhoWaitedBeforeSamplesDidIsShedAsWell) {
  std::atomic<bool> writers_wait = false;
  ReadAdmission admission(4, [&] { return writers_wait.load(); });
  std::list<ReadAdmission::Ticket> held;
  for (int i = 0; i < 4; ++i) held.push_back(*admission.Enter(absl::ZeroDuration()));
  absl::Status waited;
  std::atomic<bool> is_waiting = false;
  Worker waiter("waiter", [&] {
    is_waiting = true;
    waited = admission.Enter(absl::Milliseconds(200)).status();
  });
  while (!is_waiting) absl::SleepFor(absl::Milliseconds(1));
  writers_wait = true;
  held.pop_front();
  waiter.Join();
  EXPECT_EQ(waited.message(),
            "3 reads are under way, limit 1 while samples wait for their commit: come again");
}

TEST(ReadAdmissionTest, WhileSamplesWaitOnePayerHasHalfOfTheQuarter) {
  ReadAdmission admission(16, [] { return true; });
  std::list<ReadAdmission::Ticket> held;
  for (int i = 0; i < 2; ++i) held.push_back(*admission.Enter(absl::ZeroDuration(), "greedy"));
  EXPECT_EQ(admission.Enter(absl::ZeroDuration(), "greedy").status().message(),
            "2 reads of this token are under way, limit 2 while samples wait for their commit: "
            "come again");
  EXPECT_TRUE(admission.Enter(absl::ZeroDuration(), "other").ok());
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
  // One of them waits, the other is refused at once, however patient it is: nobody knows which.
  std::atomic<int> refused_count = 0;
  std::atomic<int> entered_count = 0;
  const auto ask = [&] {
    const auto ticket = admission.Enter(absl::Seconds(60), "one");
    ++(ticket.ok() ? entered_count : refused_count);
  };
  Worker first("first", ask);
  Worker second("second", ask);
  const absl::Time end = absl::Now() + absl::Seconds(30);
  while (refused_count == 0 && absl::Now() < end) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(refused_count, 1);
  EXPECT_EQ(entered_count, 0);
  held.reset();
  first.Join();
  second.Join();
  EXPECT_EQ(refused_count, 1);
  EXPECT_EQ(entered_count, 1);
}

TEST(ReadAdmissionTest, OfWhoRestsOnePayersAreHalf) {
  ReadAdmission admission(2);
  // Each rests within the one before, so that all rest at once.
  int resting = 0;
  std::function<void()> rest = [&] {
    auto ticket = admission.Enter(absl::ZeroDuration(), "one");
    if (!ticket.ok()) return;
    ++resting;
    ticket->RestFor(rest);
  };
  rest();
  // The last of them kept its place, for half of those that may rest were there.
  EXPECT_EQ(resting, 65);
  auto other = *admission.Enter(absl::ZeroDuration(), "other");
  other.RestFor([&] { EXPECT_TRUE(admission.Enter(absl::ZeroDuration(), "third").ok()); });
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
