#include "storage/cap_removals.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

CapRemoval Removal(std::int64_t trial, const std::string& group, std::int64_t samples,
                   std::int64_t first, std::int64_t last) {
  return {.trial_id = TrialId{trial},
          .metric_group = group,
          .field = "trial_bytes",
          .sample_count = samples,
          .raw_bytes = samples * 2,
          .first_time_us = first,
          .last_time_us = last};
}

TEST(CapRemovalsTest, JoinsLinesOfOneTrialGroupAndCap) {
  CapRemovals removals;
  removals.Add(Removal(2, "gpu", 5, 10, 20));
  removals.Add(Removal(1, "gpu", 1, 1, 2));
  removals.Add(
      {.trial_id = TrialId{2}, .metric_group = "gpu", .field = "trial_bytes", .rollup_bytes = 7});
  removals.Add(Removal(2, "gpu", 3, -5, 15));
  removals.Add(Removal(2, "cpu", 3, 5, 15));
  removals.Add(Removal(2, "cpu", 0, 5, 15));
  removals.Sort();
  CapRemoval joined = Removal(2, "gpu", 8, -5, 20);
  joined.rollup_bytes = 7;
  EXPECT_EQ(removals.removals, (std::vector<CapRemoval>{Removal(1, "gpu", 1, 1, 2),
                                                        Removal(2, "cpu", 3, 5, 15), joined}));
  EXPECT_EQ(removals.sample_count, 12);
  EXPECT_EQ(removals.raw_bytes, 24);
  EXPECT_EQ(removals.rollup_bytes, 7);
  EXPECT_FALSE(removals.truncated);
}

TEST(CapRemovalsTest, ListsSoManyAndCountsAll) {
  CapRemovals removals;
  for (int trial = 20'000; trial > 0; --trial) removals.Add(Removal(trial, "gpu", 1, 1, 2));
  removals.Sort();
  EXPECT_EQ(removals.removals.size(), kRemovalsListedMax);
  EXPECT_EQ(removals.removals.front().trial_id, TrialId{1});
  EXPECT_EQ(removals.sample_count, 20'000);
  EXPECT_TRUE(removals.truncated);
}

}  // namespace
}  // namespace stepwell
