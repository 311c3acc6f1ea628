#include "base/trace/interval_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bitset>
#include <random>

#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

constexpr std::int64_t kEnd = 200;
using Moments = std::bitset<kEnd>;

std::vector<Interval> RandomIntervals(std::mt19937_64& random) {
  std::vector<Interval> intervals(random() % 12);
  for (Interval& each : intervals) {
    each.begin = static_cast<std::int64_t>(random() % kEnd);
    each.end =
        std::min<std::int64_t>(kEnd, each.begin - 3 + static_cast<std::int64_t>(random() % 30));
  }
  return intervals;
}

Moments Of(const std::vector<Interval>& intervals) {
  Moments moments;
  for (const Interval& each : intervals) {
    for (std::int64_t at = each.begin; at < each.end; ++at)
      moments.set(static_cast<std::size_t>(at));
  }
  return moments;
}

TEST(IntervalSet, SaysWhatMomentsSay) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 5'000; ++round) {
    const auto a = RandomIntervals(random);
    const auto b = RandomIntervals(random);
    const IntervalSet x = IntervalSet::Of(a);
    const IntervalSet y = IntervalSet::Of(b);
    ASSERT_EQ(Of(x.intervals()), Of(a));
    ASSERT_EQ(x.length(), static_cast<std::int64_t>(Of(a).count()));
    ASSERT_EQ(Of(x.Or(y).intervals()), Of(a) | Of(b));
    ASSERT_EQ(Of(x.And(y).intervals()), Of(a) & Of(b));
    ASSERT_EQ(Of(x.Without(y).intervals()), Of(a) & ~Of(b));
    const Interval bounds = {static_cast<std::int64_t>(random() % kEnd),
                             static_cast<std::int64_t>(random() % kEnd)};
    ASSERT_EQ(Of(x.Within(bounds).intervals()), Of(a) & Of({bounds}));
    for (std::size_t i = 1; i < x.intervals().size(); ++i) {
      ASSERT_LT(x.intervals()[i - 1].end, x.intervals()[i].begin);
    }
  }
}

}  // namespace
}  // namespace stepwell
