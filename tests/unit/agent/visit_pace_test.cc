#include "client/agent/visit_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

absl::Duration Ms(double ms) { return absl::Milliseconds(ms); }

TEST(VisitPaceTest, LooksAreOnTheGridALittleAfterTheTicks) {
  const struct {
    const char* name;
    double interval_ms;
    double now_ms;
    double next_ms;
  } rows[] = {
      {"on it", 100, 1020, 1120},
      {"a moment late", 100, 1020.1, 1120},
      {"off it", 100, 1070, 1120},
      {"an eighth before", 100, 1107.4, 1120},
      {"nearer", 100, 1107.6, 1220},
      {"between ticks and looks", 100, 1005, 1020},
      {"long intervals", 1000, 3020, 4020},
      {"long, off it", 1000, 3500, 4020},
      {"no divisor of a second", 490, 490 * 3 + 20, 490 * 4 + 20},
      {"the shortest: a quarter behind the ticks", 10, 1002.5, 1012.5},
  };
  for (const auto& row : rows) {
    EXPECT_EQ(VisitPace(Ms(row.interval_ms)).NextLook(Ms(row.now_ms)), Ms(row.next_ms)) << row.name;
  }
}

// Whatever wakes the agent in between, and however late it wakes: nothing waits longer than an interval
// and an eighth for a look, nor for a visit longer than 500 ms, or an interval that is longer.
TEST(VisitPaceTest, NothingWaitsLongerThanItMay) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](double limit) {
    return Ms(std::uniform_real_distribution<double>(0, limit)(random));
  };
  for (const double interval_ms : {10., 33., 100., 250., 300., 490., 1000.}) {
    VisitPace pace(Ms(interval_ms));
    absl::Duration now = Ms(12345);
    EXPECT_FALSE(pace.MaySkip(now)) << "the first";
    pace.OnVisited(now);
    absl::Duration visited = now;
    int skipped = 0;
    for (int i = 0; i < 2000; ++i) {
      const absl::Duration next = pace.NextLook(now);
      ASSERT_GT(next, now);
      ASSERT_LE(next - now, Ms(interval_ms * 9 / 8));
      // Mostly at that time or a little later, sometimes woken before.
      const absl::Duration late = below(0.2);
      now = i % 7 == 0 ? now + (next - now) / 3 : next + late;
      const bool may_skip = pace.MaySkip(now);
      ASSERT_LE(now - visited, std::max(Ms(500), Ms(interval_ms * 9 / 8)) + Ms(0.4))
          << interval_ms << " ms, step " << i;
      skipped += may_skip ? 1 : 0;
      if (may_skip && i % 5 != 0) continue;
      pace.OnVisited(now);
      visited = now;
    }
    if (interval_ms <= 100) {
      EXPECT_GT(skipped, 500) << interval_ms;
    }
  }
}

// As often as it can be without being late: four of five looks at 100 ms cost no visit.
TEST(VisitPaceTest, AQuietSecondHasTwoVisits) {
  VisitPace pace(Ms(100));
  int visits = 0;
  absl::Duration now = Ms(1020);
  pace.OnVisited(now);
  for (int i = 0; i < 100; ++i) {
    now = pace.NextLook(now) + Ms(i % 3 * 0.05);
    if (pace.MaySkip(now)) continue;
    ++visits;
    pace.OnVisited(now);
  }
  EXPECT_EQ(visits, 20);
}

}  // namespace
}  // namespace stepwell::agent
