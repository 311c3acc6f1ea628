#include "client/agent/clock_offset.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "tests/support/codec_vectors.h"

namespace stepwell::agent {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

absl::Duration Ms(double ms) { return absl::Seconds(ms / 1000); }

// Times in ms since kStart. Our two clocks run together, the master's is ahead by a given amount.
struct Exchange {
  double sent;
  double stamped;
  double received;
  double ahead;
};

struct Row {
  const char* name;
  std::vector<Exchange> exchanges;
  double read_at;
  double ahead;
  double error;
};

void Make(ClockOffset& offset, const Exchange& exchange) {
  offset.OnSent("w", Ms(exchange.sent));
  offset.OnAnswered("w", kStart + Ms(exchange.stamped + exchange.ahead), Ms(exchange.received));
}

TEST(ClockOffsetTest, AgentRule12_TheMostCertainExchangeCountsUntilItIsTooOld) {
  const Row rows[] = {
      {"same clocks", {{0, 5, 10, 0}}, 10, 0, 5.002},
      {"ahead", {{0, 5, 10, 250}}, 10, 250, 5.002},
      {"behind", {{0, 5, 10, -250}}, 10, -250, 5.002},
      {"stamped early", {{0, 0, 10, 0}}, 10, -5, 5.002},
      {"stamped late", {{0, 10, 10, 0}}, 10, 5, 5.002},
      {"no time at all", {{10, 10, 10, 3}}, 10, 3, 0.001},
      {"a better one", {{0, 0, 10, 0}, {20, 20.5, 21, 0}}, 21, 0, 0.5011},
      {"a worse one", {{0, 0.5, 1, 0}, {20, 20, 120, 0}}, 120, 0, 0.513},
      {"age: 1000 s cost 100 ms", {{0, 0.5, 1, 0}}, 1'000'000, 0, 100.501},
      {"an old good one gives way",
       {{0, 0.5, 1, 0}, {1'000'000, 1'000'000, 1'000'100, 0}},
       1'000'100,
       -50,
       50.011},
      {"a worse one that contradicts it: a clock was set",
       {{0, 0.5, 1, 0}, {1000, 1010, 1020, 7000}},
       1020,
       7000,
       10.003},
      {"the master's clock was set",
       {{0, 0.5, 1, 0}, {1'000'000, 1'000'000.5, 1'000'001, 7000}},
       1'000'001,
       7000,
       0.5011},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    ClockOffset offset;
    for (const Exchange& exchange : row.exchanges) Make(offset, exchange);
    const auto reading = offset.Read(kStart + Ms(row.read_at), Ms(row.read_at));
    ASSERT_TRUE(reading.has_value());
    EXPECT_NEAR(absl::ToDoubleMilliseconds(reading->ahead), row.ahead, 1e-3);
    EXPECT_NEAR(absl::ToDoubleMilliseconds(reading->error), row.error, 1e-3);
  }
}

// Delays of 10 us to 2 s, each way its own, and a master's clock that goes up to 100 us a second faster or slower.
TEST(ClockOffsetTest, AgentRule12_TheErrorIsNeverSmallerThanItIs) {
  std::mt19937_64 random(stepwell::testing::TestSeed());
  const auto between = [&](double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(random);
  };
  const auto delay = [&] { return absl::Seconds(std::pow(10, between(-5, 0.3))); };
  double closest = 0;
  for (int run = 0; run < 1000; ++run) {
    ClockOffset offset;
    const absl::Duration ahead = absl::Seconds(between(-1e5, 1e5));
    const double drift = between(0, 1) < 0.2 ? 100e-6 : between(-100e-6, 100e-6);
    const auto master = [&](absl::Duration monotonic) {
      return kStart + ahead + monotonic * (1 + drift);
    };
    absl::Duration now = absl::Seconds(between(0, 1000));
    for (int exchange = 0; exchange < 20; ++exchange) {
      offset.OnSent("w", now);
      now += delay();
      const absl::Time stamp = absl::FromUnixMicros(absl::ToUnixMicros(master(now)));
      now += delay();
      offset.OnAnswered("w", stamp, now);
      for (const double later : {0.0, between(0, 1), between(1, 60)}) {
        const absl::Duration at = now + absl::Seconds(later);
        const auto reading = offset.Read(kStart + at, at);
        ASSERT_TRUE(reading.has_value());
        const absl::Duration off = absl::AbsDuration(kStart + at + reading->ahead - master(at));
        ASSERT_LE(off, reading->error + absl::Nanoseconds(1)) << "run " << run;
        closest = std::max(closest, absl::FDivDuration(off, reading->error));
      }
      now += absl::Seconds(between(0, 60));
    }
  }
  EXPECT_GT(closest, 0.99) << "the simulation never comes near the bound";
}

TEST(ClockOffsetTest, KnowsNothingBeforeAnExchangeIsWhole) {
  ClockOffset offset;
  EXPECT_FALSE(offset.Read(kStart, Ms(0)));
  offset.OnAnswered("w", kStart, Ms(1));
  EXPECT_FALSE(offset.Read(kStart, Ms(1)));
  offset.OnSent("w", Ms(2));
  offset.Forget();
  offset.OnAnswered("w", kStart, Ms(3));
  EXPECT_FALSE(offset.Read(kStart, Ms(3)));
  offset.OnSent("w", Ms(4));
  offset.OnAnswered("w", absl::UnixEpoch(), Ms(5));  // a master that tells no time
  EXPECT_FALSE(offset.Read(kStart, Ms(5)));
}

// The next connection may lead to another master, whose clock is another: also one that lies within what is not contradicted.
TEST(ClockOffsetTest, TheFirstExchangeOfAConnectionCounts) {
  ClockOffset offset;
  Make(offset, {0, 0.5, 1, 0});
  offset.Forget();
  const auto kept = offset.Read(kStart + Ms(2), Ms(2));
  ASSERT_TRUE(kept.has_value());
  EXPECT_NEAR(absl::ToDoubleMilliseconds(kept->error), 0.501, 1e-3);
  Make(offset, {100, 110, 120, 3});
  EXPECT_NEAR(absl::ToDoubleMilliseconds(offset.Read(kStart + Ms(120), Ms(120))->ahead), 3, 1e-3);
  EXPECT_NEAR(absl::ToDoubleMilliseconds(offset.Read(kStart + Ms(120), Ms(120))->error), 10.003,
              1e-3);
  Make(offset, {200, 200, 300, 3});  // less certain, of the same connection
  EXPECT_NEAR(absl::ToDoubleMilliseconds(offset.Read(kStart + Ms(300), Ms(300))->ahead), 3, 1e-3);
}

TEST(ClockOffsetTest, TheTimeIsAskedForEachMinuteAndMoreOftenWhileTracesAreWritten) {
  ClockOffset offset;
  const auto ask = [&](double seconds) {
    offset.OnAsked("clock", absl::Seconds(seconds));
    offset.OnAnswered("clock", kStart + absl::Seconds(seconds), absl::Seconds(seconds));
  };
  EXPECT_TRUE(offset.IsAskDue(absl::Seconds(5)));
  ask(5);
  Make(offset, {7000, 7000, 7001, 0});  // an Open tells it, too, less certainly
  EXPECT_FALSE(offset.IsAskDue(absl::Seconds(64)));
  EXPECT_TRUE(offset.IsAskDue(absl::Seconds(65)));
  ask(65);
  offset.NoteTraced(absl::Seconds(70));
  EXPECT_FALSE(offset.IsAskDue(absl::Seconds(74)));
  EXPECT_TRUE(offset.IsAskDue(absl::Seconds(75)));
  EXPECT_FALSE(offset.IsAskDue(absl::Seconds(101)));  // no more traces
  // Another connection, perhaps to another master.
  offset.Forget();
  EXPECT_TRUE(offset.IsAskDue(absl::Seconds(101)));
}

TEST(ClockOffsetTest, OurOwnClockMayBeSet) {
  ClockOffset offset;
  Make(offset, {0, 0.5, 1, 0});
  const auto reading = offset.Read(kStart + Ms(1) + absl::Seconds(-60), Ms(1));
  EXPECT_NEAR(absl::ToDoubleSeconds(reading->ahead), 60, 1e-6);
}

}  // namespace
}  // namespace stepwell::agent
