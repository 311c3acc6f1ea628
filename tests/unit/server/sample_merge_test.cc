#include "server/sample_merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

Sample At(std::int64_t time_us, std::int32_t writer_no, double value) {
  return {.time_us = time_us, .writer_no = WriterNo{writer_no}, .value = value};
}

TEST(SampleMergeTest, MergesRunsOfAnyOverlapInOrder) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    SampleMerge merge;
    SampleRun all;
    const std::size_t run_count = random() % 6;
    for (std::size_t i = 0; i < run_count; ++i) {
      SampleRun run;
      const std::size_t count = random() % 30;
      for (std::size_t k = 0; k < count; ++k) {
        run.push_back(At(static_cast<std::int64_t>(random() % 100),
                         1 + static_cast<std::int32_t>(random() % 3),
                         static_cast<double>(random() % 5)));
      }
      SortRun(run);
      all.insert(all.end(), run.begin(), run.end());
      merge.Add(std::move(run));
    }
    std::sort(all.begin(), all.end(), ComesBefore);
    for (const Sample& expected : all) {
      ASSERT_FALSE(merge.empty());
      ASSERT_EQ(merge.NextTime(), expected.time_us);
      const Sample sample = merge.Take();
      ASSERT_EQ(sample.time_us, expected.time_us);
      ASSERT_EQ(sample.writer_no, expected.writer_no);
      ASSERT_EQ(sample.value, expected.value);
    }
    ASSERT_TRUE(merge.empty());
  }
}

TEST(SampleRunTest, UnpacksOnlyPresentTicks) {
  const std::vector<std::int64_t> times = {30, 10, 20};
  const std::vector<std::int32_t> batches = {3, 1, 2};
  const std::vector<std::uint8_t> presence = {1, 1, 0};
  const std::vector<double> values = {0.3, 0.1};
  SampleRun run;
  AppendSamples({.times_us = times,
                 .batches = batches,
                 .presence = presence,
                 .values = values,
                 .writer_no = WriterNo{4},
                 .attempt = 2},
                run);
  SortRun(run);
  ASSERT_EQ(run.size(), 2u);
  EXPECT_EQ(run[0].time_us, 10);
  EXPECT_EQ(run[0].batch, 1);
  EXPECT_EQ(run[0].value, 0.1);
  EXPECT_EQ(run[1].value, 0.3);
  EXPECT_EQ(run[1].attempt, 2);
}

}  // namespace
}  // namespace stepwell
