#include "base/trace/master_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/trace/trace_origin.h"
#include "tests/unit/base/trace/test_seed.h"

namespace stepwell {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

TEST(MasterClockTest, TheErrorIsThatOfItsReadingsAndOfTheDriftAroundThem) {
  MasterClock clock;
  EXPECT_FALSE(clock.is_known());
  clock.Take({.at_ns = 10 * kSecond, .ahead_ns = 5000, .error_ns = 200}, "t");
  ASSERT_TRUE(clock.is_known());
  const auto within = [&](std::int64_t from_s, std::int64_t to_s) {
    return clock.Within({from_s * kSecond, to_s * kSecond});
  };
  EXPECT_EQ(within(10, 10).ahead_ns(), 5000);
  EXPECT_EQ(within(10, 10).error_ns(), 200);
  // A tenth of a millisecond for each second before it, and behind it.
  EXPECT_EQ(within(8, 10).error_ns(), 200 + 200'001);
  EXPECT_EQ(within(8, 9).error_ns(), 200 + 200'001);
  EXPECT_EQ(within(9, 13).error_ns(), 200 + 300'001);
  // The same exchange, ten seconds older.
  clock.Take({.at_ns = 20 * kSecond, .ahead_ns = 5000, .error_ns = 200 + 1'000'000}, "t");
  EXPECT_NEAR(static_cast<double>(within(10, 20).error_ns()), 1'000'200, 2);
  EXPECT_NEAR(static_cast<double>(within(12, 14).error_ns()), 400'200, 2);
  // A newer one: they have grown up to where both allow the same, and no further.
  clock.Take({.at_ns = 30 * kSecond, .ahead_ns = 6000, .error_ns = 100}, "t");
  EXPECT_EQ(within(30, 30).ahead_ns(), 6000);
  EXPECT_NEAR(static_cast<double>(within(10, 30).error_ns()), 1'000'200, 1000);
  EXPECT_NEAR(static_cast<double>(within(28, 29).error_ns()), 200'100, 2);
}

TEST(MasterClockTest, AClockThatWasSetIsAsFarOffAsBothReadingsSay) {
  MasterClock clock;
  clock.Take({.at_ns = 10 * kSecond, .ahead_ns = 0, .error_ns = 100}, "t");
  clock.Take({.at_ns = 20 * kSecond, .ahead_ns = 5 * kSecond, .error_ns = 100}, "t");
  for (const Interval window :
       {Interval{11 * kSecond, 12 * kSecond}, {10 * kSecond, 30 * kSecond}}) {
    const MasterClock::Bounds bounds = clock.Within(window);
    EXPECT_LE(bounds.low_ns, -100);
    EXPECT_GE(bounds.high_ns, 5 * kSecond + 100);
    EXPECT_LE(bounds.error_ns(), 3 * kSecond);
  }
}

// By 50 ms between the first two, of which the second was taken over a slow network: the third shows it.
TEST(MasterClockTest, ALooseReadingBehindASetClockIsNotNarrowedByThoseBefore) {
  constexpr std::int64_t kMs = 1'000'000;
  MasterClock clock;
  clock.Take({.at_ns = 10 * kSecond, .ahead_ns = 0, .error_ns = kMs / 10}, "t");
  clock.Take({.at_ns = 20 * kSecond, .ahead_ns = 50 * kMs, .error_ns = 100 * kMs}, "t");
  clock.Take({.at_ns = 30 * kSecond, .ahead_ns = 50 * kMs, .error_ns = kMs / 10}, "t");
  for (const std::int64_t at : {11, 15, 20, 25, 29}) {
    EXPECT_GE(clock.Within({at * kSecond, at * kSecond}).high_ns, 50 * kMs) << at;
  }
  EXPECT_LE(clock.Within({10 * kSecond, 20 * kSecond}).low_ns, 0);
}

TEST(MasterClockTest, ReadingsOfTwoTracesOfOneClockCountTogether) {
  MasterClock early, late, other;
  early.Take({.at_ns = 10 * kSecond, .ahead_ns = 5000, .error_ns = 200}, "t");
  late.Take({.at_ns = 3610 * kSecond, .ahead_ns = 9000, .error_ns = 300}, "t");
  other.Take({.at_ns = 3610 * kSecond, .ahead_ns = 77, .error_ns = 1}, "other");
  const MasterClock none;
  for (const bool is_late_first : {false, true}) {
    const MasterClock both = MasterClock::Of(
        {&none, is_late_first ? &late : &early, &other, is_late_first ? &early : &late}, "t");
    EXPECT_EQ(both.trial(), "t");
    EXPECT_EQ(both.Within({10 * kSecond, 10 * kSecond}).ahead_ns(), 5000);
    EXPECT_EQ(both.Within({3610 * kSecond, 3610 * kSecond}).ahead_ns(), 9000);
    EXPECT_EQ(both.Within({3610 * kSecond, 3610 * kSecond}).error_ns(), 300);
  }
}

TEST(MasterClockTest, WhatIsAbsurdLateOrOfAnotherTrialIsLeftOut) {
  MasterClock clock;
  clock.Take({.at_ns = 0, .ahead_ns = 0, .error_ns = -1}, "t");
  clock.Take({.at_ns = 0, .ahead_ns = INT64_MAX, .error_ns = 1}, "t");
  clock.Take({.at_ns = 0, .ahead_ns = INT64_MIN, .error_ns = 1}, "t");
  clock.Take({.at_ns = 0, .ahead_ns = 0, .error_ns = INT64_MAX}, "t");
  EXPECT_FALSE(clock.is_known());
  clock.Take({.at_ns = 10, .ahead_ns = 7, .error_ns = 1}, "t");
  clock.Take({.at_ns = 9, .ahead_ns = 8, .error_ns = 1}, "t");
  clock.Take({.at_ns = 11, .ahead_ns = 9, .error_ns = 1}, "other");
  EXPECT_EQ(clock.Within({10, 10}).ahead_ns(), 7);
  EXPECT_EQ(clock.trial(), "t");
}

TEST(MasterClockTest, TimesFarFromAnyReadingDoNotOverflow) {
  MasterClock clock;
  constexpr std::int64_t kMost = std::int64_t{24} * 366 * 3600 * kSecond;
  clock.Take({.at_ns = INT64_MIN, .ahead_ns = kMost, .error_ns = kMost}, "t");
  clock.Take({.at_ns = INT64_MAX, .ahead_ns = -kMost, .error_ns = kMost}, "t");
  const MasterClock::Bounds bounds = clock.Within({INT64_MIN, INT64_MAX});
  // What both allow, grown by what clocks drift in 584 years.
  EXPECT_LE(bounds.low_ns, 0);
  EXPECT_GE(bounds.high_ns, 0);
  EXPECT_GE(bounds.error_ns(), 0);
}

TEST(MasterClockTest, ALooseReadingBesideABetterOneCostsNothing) {
  MasterClock good, loose;
  good.Take({.at_ns = 10 * kSecond, .ahead_ns = 100, .error_ns = 4}, "t");
  loose.Take({.at_ns = 10 * kSecond - 50, .ahead_ns = -700, .error_ns = 5000}, "t");
  loose.Take({.at_ns = 10 * kSecond + 50, .ahead_ns = 700, .error_ns = 5000}, "t");
  const MasterClock both = MasterClock::Of({&loose, &good}, "t");
  const MasterClock::Bounds bounds = both.Within({10 * kSecond - 60, 10 * kSecond + 60});
  EXPECT_NEAR(static_cast<double>(bounds.ahead_ns()), 100, 3);
  EXPECT_LE(bounds.error_ns(), 8);
}

TEST(MasterClockTest, OfVeryManyReadingsSomeGoAndTheirDriftIsCounted) {
  MasterClock clock;
  constexpr std::int64_t kCount = 100'000;
  for (std::int64_t i = 0; i < kCount; ++i) {
    clock.Take({.at_ns = i * kSecond, .ahead_ns = 0, .error_ns = 100}, "t");
  }
  const auto error = [&](std::int64_t from, std::int64_t to) {
    return clock.Within({from * kSecond, to * kSecond}).error_ns();
  };
  EXPECT_NEAR(static_cast<double>(error(0, 0)), 100, 1);
  EXPECT_NEAR(static_cast<double>(error(kCount - 1, kCount - 1)), 100, 1);
  // 256 seconds lie between two that remain.
  EXPECT_LE(error(0, kCount - 1), 100 + 128 * 100'000 + 2);
  EXPECT_GE(error(0, kCount - 1), 100 + 10 * 100'000);
}

TEST(MasterClockTest, ReadingsOfVeryManyTracesAreBoundedAndStillHold) {
  for (const bool was_set : {false, true}) {
    std::vector<MasterClock> clocks(40);
    std::vector<const MasterClock*> all;
    for (std::size_t i = 0; i < clocks.size(); ++i) {
      for (std::int64_t k = 0; k < 400; ++k) {
        const std::int64_t at = static_cast<std::int64_t>(i) + 40 * k;
        const std::int64_t ahead = was_set && at > 8000 ? 5 * kSecond : 0;
        clocks[i].Take({.at_ns = at * kSecond, .ahead_ns = ahead, .error_ns = 100}, "t");
      }
      all.push_back(&clocks[i]);
    }
    const MasterClock together = MasterClock::Of(all, "t");
    for (const std::int64_t at : {0, 4000, 8000, 8001, 12'000, 15'999}) {
      const MasterClock::Bounds bounds = together.Within({at * kSecond, at * kSecond});
      const std::int64_t truth = was_set && at > 8000 ? 5 * kSecond : 0;
      EXPECT_LE(bounds.low_ns, truth) << at;
      EXPECT_GE(bounds.high_ns, truth) << at;
      const bool is_at_the_set = at == 8000 || at == 8001;
      EXPECT_LE(bounds.error_ns(), is_at_the_set ? 3 * kSecond : 1'000'000) << at;
    }
  }
}

TEST(MasterClockTest, IsReadFromMetadataOfATrace) {
  TraceScan scan;
  scan.TakeEvent(R"({"ph":"B","name":"a","ts":1000,"pid":1,"tid":1})");
  for (
      const char* event :
      {R"({"ph":"M","name":"master_clock","pid":1,"tid":1,"args":{"at_ns":2000000,"ahead_ns":-70,"error_ns":9,"trial":"p/t"}})",
       R"({"ph":"M","name":"master_clock","pid":1,"tid":1,"args":{"at_ns":"x","ahead_ns":-70,"error_ns":9}})",
       R"({"ph":"M","name":"master_clock","pid":1,"tid":1})"}) {
    scan.TakeEvent(event);
  }
  const MasterClock clock = scan.Finish().master_clock;
  ASSERT_TRUE(clock.is_known());
  EXPECT_EQ(clock.Within({2'000'000, 2'000'000}).ahead_ns(), -70);
  EXPECT_EQ(clock.trial(), "p/t");
}

// A clock that is off and drifts, asked over ways of different length each; the error is never less than the truth, at
// any moment of any window, be it before, between or behind the readings.
TEST(MasterClockTest, TheStatedErrorIsNeverLessThanTheTrueOneInAThousandExchanges) {
  std::mt19937_64 random(TestSeed());
  const auto uniform = [&](double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  };
  for (int round = 0; round < 1000; ++round) {
    const double skew = uniform(-1e9, 1e9);
    const double drift = uniform(-1, 1) * kClockDriftMax;
    // There and back again: as far off in between as at neither end.
    const double period = uniform(1e9, 60e9);
    const auto ahead_at = [&](double at) {
      return skew + drift * std::abs(std::fmod(at, period) - period / 2);
    };
    const double way_max = std::pow(10, uniform(2, 6.7));
    const double first = 100e9;
    MasterClock clock;
    double at = first;
    double exchanged_at = 0, ahead = 0, error = 0;
    const int count = 1 + static_cast<int>(uniform(0, 12));
    for (int i = 0; i < count; ++i) {
      if (i > 0 || uniform(0, 1) < 0.5) at += uniform(0, 20e9);
      if (i == 0 || uniform(0, 1) < 0.3) {
        // Stamped anywhere between its sending and its answer's coming.
        const double there = uniform(0, way_max), back = uniform(0, way_max);
        const double sent = at - there - back;
        exchanged_at = sent + (there + back) / 2;
        ahead = sent + there + ahead_at(sent + there) - exchanged_at;
        error = (there + back) / 2;
      }
      clock.Take({.at_ns = static_cast<std::int64_t>(at),
                  .ahead_ns = static_cast<std::int64_t>(ahead),
                  .error_ns = static_cast<std::int64_t>(
                                  std::ceil(error + (at - exchanged_at) * kClockDriftMax)) +
                              1},
                 "t");
    }
    for (int look = 0; look <= 20; ++look) {
      const double from = uniform(first - 30e9, at + 30e9);
      const double to = look % 4 == 0 ? from : uniform(from, at + 30e9);
      const MasterClock::Bounds stated =
          clock.Within({static_cast<std::int64_t>(from), static_cast<std::int64_t>(to)});
      for (int part = 0; part <= 20; ++part) {
        const double when = from + (to - from) * part / 20;
        EXPECT_LE(ahead_at(when), static_cast<double>(stated.high_ns) + 2)
            << "round " << round << ", at " << when;
        EXPECT_GE(ahead_at(when), static_cast<double>(stated.low_ns) - 2)
            << "round " << round << ", at " << when;
      }
    }
  }
}

}  // namespace
}  // namespace stepwell
