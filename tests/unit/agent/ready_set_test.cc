// Who is due, and what makes one so.
#include "client/agent/ready_set.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>

#include "absl/time/time.h"

namespace stepwell::agent {
namespace {

constexpr absl::Duration kNow = absl::Seconds(100);

class ReadySetTest : public ::testing::Test {
 protected:
  // Of those due at `now`, from `begin` on; -1 = none.
  int First(std::size_t begin, absl::Duration now = kNow) {
    const auto due = set_->FindDue(begin, set_->place_count(), now);
    return due ? static_cast<int>(due->place) : -1;
  }
  void Rest(std::size_t place, absl::Duration until = absl::InfiniteDuration()) {
    const auto due = set_->FindDue(place, 1, kNow);
    ASSERT_TRUE(due.has_value());
    set_->Rest(*due, until);
  }

  const std::shared_ptr<ReadySet> set_ = std::make_shared<ReadySet>();
};

TEST_F(ReadySetTest, WhoComesIsDueAndIsFoundInACircle) {
  EXPECT_EQ(First(0), -1);
  for (std::size_t place = 0; place < 3; ++place) set_->Take(place);
  EXPECT_EQ(First(0), 0);
  EXPECT_EQ(First(2), 2);
  EXPECT_EQ(First(3), 0) << "behind the last comes the first";
  Rest(2);
  EXPECT_EQ(First(2), 0);
  Rest(0);
  Rest(1);
  EXPECT_EQ(First(0), -1);
  set_->Mark(1);
  EXPECT_EQ(First(2), 1);
  set_->MarkAll();
  EXPECT_EQ(First(2), 2);
}

TEST_F(ReadySetTest, NotMoreThanThoseAskedForAreLookedAt) {
  for (std::size_t place = 0; place < 3; ++place) set_->Take(place);
  Rest(0);
  Rest(1);
  EXPECT_FALSE(set_->FindDue(0, 2, kNow).has_value());
  EXPECT_TRUE(set_->FindDue(0, 3, kNow).has_value());
}

TEST_F(ReadySetTest, WhoRestsIsDueByItselfWhenItsTimeHasCome) {
  set_->Take(0);
  Rest(0, kNow + absl::Seconds(8));
  EXPECT_EQ(First(0, kNow + absl::Seconds(7)), -1);
  EXPECT_EQ(First(0, kNow + absl::Seconds(8)), 0);
}

// Otherwise what was appended behind the question would wait until the next heartbeat.
TEST_F(ReadySetTest, WhoIsMarkedWhileItIsAskedDoesNotRest) {
  set_->Take(0);
  const auto due = set_->FindDue(0, 1, kNow);
  ASSERT_TRUE(due.has_value());
  set_->Mark(0);
  set_->Rest(*due, absl::InfiniteDuration());
  EXPECT_EQ(First(0), 0);
}

TEST_F(ReadySetTest, APlaceThatIsLeftIsNotDueUntilItIsTakenAnew) {
  set_->Take(0);
  const auto due = set_->FindDue(0, 1, kNow);
  ASSERT_TRUE(due.has_value());
  set_->Leave(0);
  set_->MarkAll();
  EXPECT_EQ(First(0), -1);
  set_->Take(0);
  set_->Rest(*due, absl::InfiniteDuration());
  EXPECT_EQ(First(0), 0) << "what was asked was the one of before";
}

TEST_F(ReadySetTest, AMarkIsOfTheSetThatItIsAttachedTo) {
  ReadyMark mark;
  mark.Set();
  for (std::size_t place = 0; place < 2; ++place) set_->Take(place);
  Rest(0);
  Rest(1);
  mark.Attach(set_, 1);
  mark.Set();
  EXPECT_EQ(First(0), 1);
  Rest(1);
  mark.Detach();
  mark.Set();
  EXPECT_EQ(First(0), -1);
}

// The invariant, with two threads: one gives, the other asks and takes. Nothing is left behind.
TEST_F(ReadySetTest, NothingThatIsGivenWhileOthersAskIsLeftBehind) {
  constexpr std::size_t kPlaces = 7;
  constexpr int kGiven = 20'000;
  std::array<std::atomic<int>, kPlaces> given{};
  for (std::size_t place = 0; place < kPlaces; ++place) set_->Take(place);
  std::atomic<bool> done = false;
  std::thread giver([&] {
    for (int i = 0; i < kGiven; ++i) {
      ++given[static_cast<std::size_t>(i) % kPlaces];
      set_->Mark(static_cast<std::size_t>(i) % kPlaces);
    }
    done = true;
  });
  int taken = 0;
  while (true) {
    const bool was_done = done;
    const auto due = set_->FindDue(0, kPlaces, kNow);
    if (!due) {
      if (was_done) break;
      continue;
    }
    const int got = given[due->place].exchange(0);
    taken += got;
    if (got == 0) set_->Rest(*due, absl::InfiniteDuration());
  }
  giver.join();
  EXPECT_EQ(taken, kGiven);
}

}  // namespace
}  // namespace stepwell::agent
