#include "server/metric_families.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

TEST(MetricFamiliesTest, AHistogramHasItsBucketsItsCountAndItsSum) {
  MetricFamilies families;
  const MetricName name{"stepwell_took_seconds", "How long it took.", MetricType::kHistogram};
  ASSERT_TRUE(families.AddHistogram(name, {.bounds = {0.5, 2}, .counts = {3, 0, 4}, .sum = 61.5},
                                    {{"what", "it"}}));
  EXPECT_FALSE(
      families.AddHistogram(name, {.bounds = {}, .counts = {9}, .sum = 0}, {{"what", "it"}}))
      << "there is such a line";
  EXPECT_EQ(families.Text(),
            "# HELP stepwell_took_seconds How long it took.\n"
            "# TYPE stepwell_took_seconds histogram\n"
            "stepwell_took_seconds_count{what=\"it\"} 7\n"
            "stepwell_took_seconds_sum{what=\"it\"} 61.5\n"
            "stepwell_took_seconds_bucket{what=\"it\",le=\"0.5\"} 3\n"
            "stepwell_took_seconds_bucket{what=\"it\",le=\"2\"} 3\n"
            "stepwell_took_seconds_bucket{what=\"it\",le=\"+Inf\"} 7\n");
}

TEST(MetricFamiliesTest, ANameHasOneType) {
  MetricFamilies families;
  const MetricName gauge{"stepwell_a", "A.", MetricType::kGauge};
  const MetricName histogram{"stepwell_b", "B.", MetricType::kHistogram};
  ASSERT_TRUE(families.Add(gauge, 1));
  ASSERT_TRUE(families.AddHistogram(histogram, {.bounds = {}, .counts = {1}, .sum = 1}));
  const std::string text = families.Text();
  EXPECT_FALSE(families.AddHistogram(gauge, {.bounds = {}, .counts = {1}, .sum = 1}, {{"x", "y"}}));
  EXPECT_FALSE(families.Add(histogram, 1, {{"x", "y"}}));
  EXPECT_EQ(families.Text(), text);
}

}  // namespace
}  // namespace stepwell
