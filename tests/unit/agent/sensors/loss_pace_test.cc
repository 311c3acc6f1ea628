#include "client/agent/sensors/loss_pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepwell::agent {
namespace {

// Of one that is asked each 10 s and begins when it may, in seconds since the first time.
std::vector<int> BeginsOf(LossPace& pace, absl::Duration took, int count) {
  std::vector<int> begins;
  absl::Duration now = absl::Hours(1);
  const absl::Duration first = now;
  while (static_cast<int>(begins.size()) < count) {
    if (pace.IsDue(now)) {
      begins.push_back(static_cast<int>(absl::ToInt64Seconds(now - first)));
      pace.Began(now, now + took);
      now += absl::Floor(took, absl::Seconds(10));
    }
    now += absl::Seconds(10);
  }
  return begins;
}

TEST(LossPaceTest, BeginsLessAndLessOftenTheSlowerItIs) {
  struct Row {
    const char* name;
    absl::Duration took;
    std::vector<int> begins;
  };
  const Row rows[] = {
      {"at once", absl::ZeroDuration(), {0, 20, 60, 140, 300, 620, 1220, 1820, 2420}},
      {"in a second", absl::Seconds(1), {0, 30, 70, 150, 310, 630, 1230}},
      {"in 5 s", absl::Seconds(5), {0, 110, 220, 330, 490, 810, 1410, 2010}},
      {"hanging for half an hour", absl::Minutes(30), {0, 37800, 75600}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    LossPace pace;
    EXPECT_EQ(BeginsOf(pace, row.took, static_cast<int>(row.begins.size())), row.begins);
    pace.Reset();
    EXPECT_EQ(BeginsOf(pace, absl::ZeroDuration(), 3), (std::vector<int>{0, 20, 60}));
  }
}

}  // namespace
}  // namespace stepwell::agent
