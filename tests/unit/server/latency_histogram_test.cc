#include "server/latency_histogram.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/worker.h"

namespace stepwell {
namespace {

TEST(LatencyHistogramTest, EachIsInTheBucketWhoseBoundItDoesNotExceed) {
  struct Row {
    const char* name;
    absl::Duration took;
    std::size_t bucket;
  };
  constexpr std::size_t kBeyond = LatencyHistogram::kBoundsUs.size();
  for (const Row& row : {Row{"none", absl::ZeroDuration(), 0},
                         {"a clock that went back", -absl::Seconds(3), 0},
                         {"the bound itself", absl::Microseconds(500), 0},
                         {"a nanosecond beyond", absl::Nanoseconds(500'001), 1},
                         {"a commit", absl::Milliseconds(7), 4},
                         {"the last bound", absl::Seconds(30), kBeyond - 1},
                         {"beyond all", absl::Seconds(31), kBeyond}}) {
    SCOPED_TRACE(row.name);
    LatencyHistogram histogram;
    histogram.Observe(row.took);
    const LatencyHistogram::Reading reading = histogram.Read();
    for (std::size_t at = 0; at <= kBeyond; ++at) {
      EXPECT_EQ(reading.counts[at], at == row.bucket ? 1U : 0U) << at;
    }
    EXPECT_NEAR(reading.sum_seconds,
                row.took < absl::ZeroDuration() ? 0 : absl::ToDoubleSeconds(row.took), 1e-9);
  }
}

TEST(LatencyHistogramTest, ManyThreadsCountEachOne) {
  LatencyHistogram histogram;
  {
    std::vector<Worker> workers;
    for (int i = 0; i < 4; ++i) {
      workers.emplace_back("observes", [&histogram] {
        for (int n = 0; n < 10'000; ++n) histogram.Observe(absl::Microseconds(n));
      });
    }
    for (Worker& worker : workers) worker.Join();
  }
  const LatencyHistogram::Reading reading = histogram.Read();
  EXPECT_EQ(std::accumulate(reading.counts.begin(), reading.counts.end(), std::uint64_t{0}),
            40'000U);
  EXPECT_EQ(reading.counts[0], 4 * 501U);
  EXPECT_NEAR(reading.sum_seconds, 4 * 9'999 * 10'000 / 2 * 1e-6, 1e-6);
}

}  // namespace
}  // namespace stepwell
