#include "storage/stretch.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>

namespace stepwell {
namespace {

std::vector<std::int64_t> Ticks(int count, std::int64_t step_us, std::int64_t start_us = 0) {
  std::vector<std::int64_t> times;
  for (int i = 0; i < count; ++i) times.push_back(start_us + i * step_us);
  return times;
}

TEST(StretchTest, CutsByCountByHourAndSlowOnesByDay) {
  constexpr std::int64_t kSecond = 1'000'000;
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  struct Row {
    std::string name;
    std::vector<std::int64_t> times;
    std::vector<std::size_t> lengths;
  };
  for (const Row& row : std::vector<Row>{
           {"nothing", {}, {}},
           {"one", {5}, {1}},
           {"an hour of seconds", Ticks(3600, kSecond), {3600}},
           {"and one more", Ticks(3601, kSecond), {3600, 1}},
           {"fast", Ticks(8000, 1000), {3600, 3600, 800}},
           {"each 10 s for two hours", Ticks(720, 10 * kSecond), {361, 359}},
           {"each minute for a day", Ticks(1440, 60 * kSecond), {61, 61, 61, 61, 61, 61, 61, 61,
                                                                 61, 61, 61, 61, 61, 61, 61, 61,
                                                                 61, 61, 61, 61, 61, 61, 61, 37}},
           {"each two minutes for two days", Ticks(1440, 120 * kSecond), {721, 719}},
           {"all at one time", Ticks(4000, 0), {3600, 400}},
           {"a day apart", {0, kSlowStretchSpanUs, kSlowStretchSpanUs + 1}, {2, 1}},
           {"from end to end of time", {kMin, 0, kMax}, {1, 1, 1}},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(CutStretches(row.times), row.lengths);
  }
}

TEST(StretchTest, CountsTheThinOnes) {
  constexpr std::int64_t kMinute = 60'000'000;
  EXPECT_EQ(CountThinStretches({}, 8), 0);
  EXPECT_EQ(CountThinStretches(Ticks(1, 1), 8), 1);
  EXPECT_EQ(CountThinStretches(Ticks(1440, kMinute), 37), 0);
  EXPECT_EQ(CountThinStretches(Ticks(1440, kMinute), 38), 1) << "what is left of the day";
  EXPECT_EQ(CountThinStretches(Ticks(100, kSlowStretchSpanUs + 1), 2), 100);
  EXPECT_EQ(CountThinStretches(Ticks(100, kSlowStretchSpanUs), 2), 0);
}

TEST(StretchTest, TellsWhetherTimesFitARow) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  TimeSpan span;
  EXPECT_TRUE(span.FitsARow());
  span.Add(std::vector<std::int64_t>{7, 5});
  span.Add({});
  span.Add(std::vector<std::int64_t>{6, 5 + kSlowStretchSpanUs});
  EXPECT_TRUE(span.FitsARow());
  span.Add(std::vector<std::int64_t>{4});
  EXPECT_FALSE(span.FitsARow());
  TimeSpan all;
  all.Add(std::vector<std::int64_t>{kMin, kMax});
  EXPECT_FALSE(all.FitsARow());
}

}  // namespace
}  // namespace stepwell
