#include "server/trace_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kSecondUs = 1'000'000;

std::vector<std::pair<std::int64_t, std::int64_t>> RangesOf(const std::vector<Interval>& seconds,
                                                            std::size_t count_max) {
  std::vector<Interval> windows;
  for (const Interval& each : seconds) {
    windows.push_back({each.begin * kSecondNs, each.end * kSecondNs});
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (const v1::TimeRange& each : CounterRanges(windows, count_max)) {
    ranges.emplace_back(each.start_time_us() / kSecondUs, each.end_time_us() / kSecondUs);
  }
  return ranges;
}

TEST(TraceCountersTest, WindowsAreWidenedAndJoinedWhereTheyAreClose) {
  EXPECT_THAT(RangesOf({}, 10), IsEmpty());
  EXPECT_THAT(RangesOf({{1000, 1010}, {1005, 1020}, {5000, 5001}, {1050, 1060}}, 10),
              ElementsAre(Pair(999, 1061), Pair(4999, 5002)));
  EXPECT_THAT(RangesOf({{1000, 1010}, {2000, 2010}, {3000, 3010}}, 2),
              ElementsAre(Pair(999, 1011), Pair(1999, 3011)));
  EXPECT_THAT(RangesOf({{0, 5}}, 10), IsEmpty()) << "it counts from its own start";
}

TEST(TraceCountersTest, ASeriesIsNamedByItsLabelsAndItsMachine) {
  v1::Series series;
  series.mutable_key()->set_metric_group("gpu");
  series.mutable_key()->set_name("gpu_util");
  (*series.mutable_key()->mutable_labels())["agent"] = "node-a";
  (*series.mutable_key()->mutable_labels())["gpu"] = "0";
  (*series.mutable_key()->mutable_labels())["device"] = "GPU-1";
  series.set_unit("percent");
  const MergedCounter counter = CounterOf(series);
  EXPECT_EQ(counter.process, "machine node-a");
  EXPECT_EQ(counter.name, "gpu_util device=GPU-1 gpu=0");
  EXPECT_EQ(counter.unit, "percent");
}

}  // namespace
}  // namespace stepwell
