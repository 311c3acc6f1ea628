#include "client/agent/clock_offset.h"

#include <gtest/gtest.h>

#include <vector>

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
  offset.OnAnswered("w", absl::ToUnixMicros(kStart + Ms(exchange.stamped + exchange.ahead)),
                    Ms(exchange.received));
}

TEST(ClockOffsetTest, AgentRule12_TheMostCertainExchangeCountsUntilItIsTooOld) {
  const Row rows[] = {
      {"same clocks", {{0, 5, 10, 0}}, 10, 0, 5.0005},
      {"ahead", {{0, 5, 10, 250}}, 10, 250, 5.0005},
      {"behind", {{0, 5, 10, -250}}, 10, -250, 5.0005},
      {"stamped early", {{0, 0, 10, 0}}, 10, -5, 5.0005},
      {"stamped late", {{0, 10, 10, 0}}, 10, 5, 5.0005},
      {"no time at all", {{10, 10, 10, 3}}, 10, 3, 0},
      {"a better one", {{0, 0, 10, 0}, {20, 20.5, 21, 0}}, 21, 0, 0.50005},
      {"a worse one", {{0, 0.5, 1, 0}, {20, 20, 120, 0}}, 120, 0, 0.51195},
      {"age: 1000 s cost 100 ms", {{0, 0.5, 1, 0}}, 1'000'000, 0, 100.5},
      {"an old good one gives way",
       {{0, 0.5, 1, 0}, {1'000'000, 1'000'000, 1'000'100, 0}},
       1'000'100,
       -50,
       50.005},
      {"the master's clock was set",
       {{0, 0.5, 1, 0}, {1'000'000, 1'000'000.5, 1'000'001, 7000}},
       1'000'001,
       7000,
       0.50005},
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

TEST(ClockOffsetTest, KnowsNothingBeforeAnExchangeIsWhole) {
  ClockOffset offset;
  EXPECT_FALSE(offset.Read(kStart, Ms(0)));
  offset.OnAnswered("w", absl::ToUnixMicros(kStart), Ms(1));
  EXPECT_FALSE(offset.Read(kStart, Ms(1)));
  offset.OnSent("w", Ms(2));
  offset.Forget();
  offset.OnAnswered("w", absl::ToUnixMicros(kStart), Ms(3));
  EXPECT_FALSE(offset.Read(kStart, Ms(3)));
  offset.OnSent("w", Ms(4));
  offset.OnAnswered("w", 0, Ms(5));  // a master that tells no time
  EXPECT_FALSE(offset.Read(kStart, Ms(5)));
}

TEST(ClockOffsetTest, OurOwnClockMayBeSet) {
  ClockOffset offset;
  Make(offset, {0, 0.5, 1, 0});
  const auto reading = offset.Read(kStart + Ms(1) + absl::Seconds(-60), Ms(1));
  EXPECT_NEAR(absl::ToDoubleSeconds(reading->ahead), 60, 1e-6);
}

}  // namespace
}  // namespace stepwell::agent
