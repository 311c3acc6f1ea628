// Whether who owns the database is silent goes by the clock of who stands by: the database's may be set while they look.
#include "server/owner_lapse.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {
namespace {

constexpr double kHourSeconds = 3600;

class OwnerLapseTest : public ::testing::Test {
 protected:
  bool Lapsed() { return lapse_.lapsed_renewal_us(now_) != 0; }
  // A look each half second, as a standby's.
  void LookFor(absl::Duration length, std::int64_t renewal_us, double age_seconds) {
    for (const SteadyTime end = now_ + length; now_ < end; now_ += absl::Milliseconds(500)) {
      lapse_.Saw(renewal_us, age_seconds, now_);
    }
  }

  OwnerLapse lapse_;
  SteadyTime now_ = SteadyTime::Now();
};

TEST_F(OwnerLapseTest, ARenewalThatStandsStillForTenSecondsHasLapsed) {
  LookFor(absl::Seconds(9.5), 7, 0);
  EXPECT_FALSE(Lapsed());
  LookFor(absl::Seconds(0.5), 7, 0);
  EXPECT_EQ(lapse_.lapsed_renewal_us(now_), 7);
}

TEST_F(OwnerLapseTest, WhoRenewsOwnsItWhateverTheClockOfTheDatabaseSays) {
  std::int64_t renewal_us = 0;
  for (const double age_seconds : {0.0, kHourSeconds, -kHourSeconds, 9.9}) {
    for (int i = 0; i < 10; ++i) {
      LookFor(absl::Seconds(2), ++renewal_us, age_seconds);
      EXPECT_FALSE(Lapsed()) << age_seconds;
    }
  }
}

TEST_F(OwnerLapseTest, AClockThatIsSetBackKeepsNobodysPlace) {
  LookFor(absl::Seconds(10), 7, -kHourSeconds);
  EXPECT_TRUE(Lapsed());
}

TEST_F(OwnerLapseTest, WhatIsOldAtTheFirstLookIsLookedAtForTwoRenewals) {
  LookFor(absl::Seconds(3.5), 7, kHourSeconds);
  EXPECT_FALSE(Lapsed());
  LookFor(absl::Seconds(0.5), 7, kHourSeconds);
  EXPECT_TRUE(Lapsed());
}

TEST_F(OwnerLapseTest, ADatabaseThatWasAwayIsLookedAtAnew) {
  LookFor(absl::Seconds(3), 7, 0);
  lapse_.SawNothing();
  EXPECT_FALSE(Lapsed());
  now_ += absl::Minutes(1);
  LookFor(absl::Seconds(3.5), 7, 64);
  EXPECT_FALSE(Lapsed()) << "its owner could not renew either";
  LookFor(absl::Seconds(0.5), 7, 64);
  EXPECT_TRUE(Lapsed());
}

}  // namespace
}  // namespace stepwell
