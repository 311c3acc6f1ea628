#include "server/bucket_plan.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

TEST(BucketPlanTest, CutsARangeIntoWholeWidths) {
  struct Row {
    std::string name;
    std::int64_t start, end;
    std::int32_t buckets_max;
    std::int64_t width, bucket_count;
  };
  const Row rows[] = {
      {"even", 0, 1000, 10, 100, 10},
      {"width is rounded up", 0, 1001, 10, 101, 10},
      {"fewer than asked for", 0, 3, 500, 1, 3},
      {"one microsecond", 7, 8, 500, 1, 1},
      {"empty", 7, 7, 500, 1, 0},
      {"one bucket", -5, 5, 1, 10, 1},
      {"before 1970", -1000, -1, 10, 100, 10},
      {"width leaves the last buckets out", 0, 11, 10, 2, 6},
      {"all of int64", INT64_MIN, INT64_MAX, 1000, 18446744073709552, 1000},
      {"all of int64 in one", INT64_MIN, INT64_MAX, 1, INT64_MAX, 3},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const BucketPlan plan = PlanBuckets(BucketAxis::kTime, row.start, row.end, row.buckets_max);
    EXPECT_EQ(plan.width, row.width);
    EXPECT_EQ(plan.bucket_count, row.bucket_count);
  }
}

TEST(BucketPlanTest, EveryPlaceOfTheRangeHasABucket) {
  for (const std::int64_t start : {INT64_MIN, std::int64_t{-1000}, std::int64_t{0}}) {
    const std::int64_t end = start == INT64_MIN ? INT64_MAX : start + 997;
    const BucketPlan plan = PlanBuckets(BucketAxis::kTime, start, end, 13);
    EXPECT_EQ(plan.IndexOf(start), 0u);
    EXPECT_EQ(plan.IndexOf(end - 1), plan.bucket_count - 1);
    EXPECT_TRUE(plan.Holds(start));
    EXPECT_FALSE(plan.Holds(end));
  }
}

TEST(BucketPlanTest, BordersBelongToTheBucketThatTheyOpen) {
  const BucketPlan plan = PlanBuckets(BucketAxis::kBatch, 10, 40, 3);
  EXPECT_EQ(plan.IndexOf(19), 0u);
  EXPECT_EQ(plan.IndexOf(20), 1u);
  EXPECT_EQ(plan.IndexOf(39), 2u);
}

}  // namespace
}  // namespace stepwell
