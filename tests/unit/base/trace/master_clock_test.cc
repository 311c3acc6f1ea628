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

TEST(MasterClockTest, TheErrorIsThatOfItsReadingsAndOfTheDriftBetweenThem) {
  MasterClock clock;
  EXPECT_FALSE(clock.is_known());
  clock.Take({.at_ns = 10 * kSecond, .ahead_ns = 5000, .error_ns = 200}, "t");
  ASSERT_TRUE(clock.is_known());
  EXPECT_EQ(clock.ahead_ns(), 5000);
  EXPECT_EQ(clock.ErrorFrom(10 * kSecond), 200);
  // A tenth of a millisecond for each second before it.
  EXPECT_EQ(clock.ErrorFrom(8 * kSecond), 200 + 200'001);
  // The same exchange, ten seconds older.
  clock.Take({.at_ns = 20 * kSecond, .ahead_ns = 5000, .error_ns = 200 + 1'000'000}, "t");
  EXPECT_EQ(clock.ErrorFrom(10 * kSecond), 1'000'200);
  // A newer one: in between both have grown.
  clock.Take({.at_ns = 30 * kSecond, .ahead_ns = 6000, .error_ns = 100}, "t");
  EXPECT_EQ(clock.ahead_ns(), 6000);
  EXPECT_NEAR(static_cast<double>(clock.ErrorFrom(10 * kSecond)), 1'001'200, 5);
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
  EXPECT_EQ(clock.ahead_ns(), 7);
  EXPECT_EQ(clock.trial(), "t");
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
  EXPECT_EQ(clock.ahead_ns(), -70);
  EXPECT_EQ(clock.trial(), "p/t");
}

// A clock that is off and drifts, asked over ways of different length each; the error is never less than the truth, at
// any moment between the trace's begin and its last reading.
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
    const double first = 1e9;
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
    const auto stated = static_cast<double>(clock.ErrorFrom(static_cast<std::int64_t>(first)));
    for (int look = 0; look <= 20; ++look) {
      const double when = first + (at - first) * look / 20;
      EXPECT_LE(std::abs(ahead_at(when) - static_cast<double>(clock.ahead_ns())), stated + 2)
          << "round " << round << ", at " << when;
    }
  }
}

}  // namespace
}  // namespace stepwell
