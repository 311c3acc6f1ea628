#include "server/believed_time.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

constexpr absl::Duration kYear = absl::Hours(24 * 365);

class BelievedTimeTest : public ::testing::Test {
 protected:
  // After so long, by a wall clock that is so far off.
  absl::Duration OffAfter(absl::Duration passed, absl::Duration off) {
    truth_ += passed;
    return believed_.At(truth_ + off, truth_ - start_) - truth_;
  }

  const absl::Time start_ = absl::UnixEpoch() + 50 * kYear;
  absl::Time truth_ = start_;
  BelievedTime believed_;
};

TEST_F(BelievedTimeTest, AClockThatGoesIsBelieved) {
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(OffAfter(absl::Minutes(1), absl::ZeroDuration()), absl::ZeroDuration());
  }
  EXPECT_EQ(OffAfter(30 * absl::Hours(24), absl::ZeroDuration()), absl::ZeroDuration())
      << "a sweep that took a month";
  EXPECT_EQ(OffAfter(absl::Minutes(1), absl::Minutes(50)), absl::Minutes(50)) << "NTP's step";
}

TEST_F(BelievedTimeTest, AJumpAheadIsNotBelievedAndIsForgottenOnceItIsSetBack) {
  OffAfter(absl::Minutes(1), absl::ZeroDuration());
  for (int minute = 0; minute < 600; ++minute) {
    ASSERT_EQ(OffAfter(absl::Minutes(1), kYear), absl::ZeroDuration());
    ASSERT_EQ(believed_.ahead(), kYear);
  }
  EXPECT_EQ(OffAfter(absl::Minutes(1), absl::ZeroDuration()), absl::ZeroDuration());
  EXPECT_EQ(believed_.ahead(), absl::ZeroDuration());
  // The next one is doubted as long as the first would have been.
  for (int hour = 0; hour < 23; ++hour) {
    ASSERT_EQ(OffAfter(absl::Hours(1), kYear), absl::ZeroDuration());
  }
}

TEST_F(BelievedTimeTest, OneThatStandsForADayIsBelieved) {
  OffAfter(absl::Minutes(1), absl::ZeroDuration());
  EXPECT_EQ(OffAfter(absl::Minutes(1), kYear), absl::ZeroDuration());
  EXPECT_EQ(OffAfter(absl::Hours(23), kYear), absl::ZeroDuration());
  EXPECT_EQ(OffAfter(absl::Hours(1), kYear), kYear);
  EXPECT_EQ(believed_.ahead(), absl::ZeroDuration());
  EXPECT_EQ(OffAfter(absl::Hours(1), kYear), kYear);
}

TEST_F(BelievedTimeTest, AnotherJumpOnTopOfOneHasADayOfItsOwn) {
  OffAfter(absl::Minutes(1), absl::ZeroDuration());
  OffAfter(absl::Minutes(1), absl::Hours(2));
  EXPECT_EQ(OffAfter(absl::Hours(23), kYear), absl::ZeroDuration());
  EXPECT_EQ(OffAfter(absl::Hours(23), kYear), absl::ZeroDuration());
  EXPECT_EQ(OffAfter(absl::Hours(1), kYear), kYear);
}

TEST_F(BelievedTimeTest, OneThatIsSetBackIsBelievedAtOnce) {
  OffAfter(absl::Minutes(1), absl::ZeroDuration());
  EXPECT_EQ(OffAfter(absl::Minutes(1), -kYear), -kYear);
  // Set right again it is ahead of what it was.
  EXPECT_EQ(OffAfter(absl::Minutes(1), absl::ZeroDuration()), -kYear);
  EXPECT_EQ(OffAfter(absl::Hours(24), absl::ZeroDuration()), absl::ZeroDuration());
}

}  // namespace
}  // namespace stepwell
