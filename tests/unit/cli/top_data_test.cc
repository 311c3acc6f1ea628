#include "client/cli/top_data.h"

#include <gtest/gtest.h>

#include <cmath>

namespace stepwell::cli {
namespace {

// "1 2 . 3": a point where there is nothing; what follows the last number is left out.
std::string Shown(const std::vector<double>& history) {
  EXPECT_EQ(history.size(), static_cast<std::size_t>(kTopBuckets));
  std::string text;
  std::size_t end = 0;
  for (const double value : history) {
    if (!text.empty()) text += ' ';
    text += std::isnan(value) ? "." : std::to_string(static_cast<int>(value));
    if (!std::isnan(value)) end = text.size();
  }
  return text.substr(0, end);
}

v1::QueryBucketsResponse::BucketSeries Series(const std::vector<std::pair<int, double>>& means) {
  v1::QueryBucketsResponse::BucketSeries series;
  for (const auto& [index, mean] : means) {
    series.add_indexes(static_cast<std::uint32_t>(index));
    series.add_means(mean);
  }
  return series;
}

TEST(TopDataTest, HistoryFollowsTheAnswersBuckets) {
  const auto series = Series({{0, 1}, {1, 2}, {3, 4}});
  EXPECT_EQ(Shown(HistoryOf(series, 0, 5, 5)), "1 2 . 4");
  EXPECT_EQ(Shown(HistoryOf(series, 0, 10, 5)), "1 1 2 2 . . 4 4")
      << "wider ones fill all they cover";
  EXPECT_EQ(Shown(HistoryOf(series, -5, 5, 5)), "2 . 4") << "what lies before is not shown";
  EXPECT_EQ(Shown(HistoryOf(Series({{0, 1}}), -5, 5, 5)), "");
  EXPECT_EQ(Shown(HistoryOf(series, 10, 5, 5)), ". . 1 2 . 4");
  EXPECT_EQ(Shown(HistoryOf(Series({{kTopBuckets - 1, 7}, {kTopBuckets, 8}}), 0, 5, 5)).back(), '7')
      << "nor what lies behind";
  EXPECT_EQ(Shown(HistoryOf(Series({}), 0, 5, 5)), "");
}

TEST(TopDataTest, TheIntervalIsWhatMostBucketsAreApart) {
  EXPECT_EQ(IntervalOf(Series({}), 5), 0) << "not known";
  EXPECT_EQ(IntervalOf(Series({{3, 1}}), 5), 0) << "nor of one bucket";
  EXPECT_EQ(IntervalOf(Series({{3, 1}, {5, 1}}), 5), 10);
  EXPECT_EQ(IntervalOf(Series({{0, 1}, {1, 1}, {2, 1}, {40, 1}, {41, 1}}), 5), 5)
      << "one gap is no interval";
}

}  // namespace
}  // namespace stepwell::cli
