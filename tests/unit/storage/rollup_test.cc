// Rollups against a plain count of the same samples, and against vectors that contradict themselves.
#include "storage/rollup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <random>

#include "storage/encoded_rollup.h"
#include "storage/rollup_stretches.h"
#include "storage/stretch.h"
#include "storage/vector_codec.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

RollupColumn Rolled(const RollupGrid& grid, const std::vector<std::int64_t>& times_us,
                    const std::vector<double>& values,
                    const std::vector<std::uint8_t>& presence = {}) {
  return RollUpColumn(grid, times_us, values, ScaledColumn(values), presence);
}

// Of one step.
std::vector<EncodedRollup> RollupsOf(const TickTable& table, std::size_t step) {
  std::vector<EncodedRollup> rollups;
  for (const StretchRollups& stretch : RollUpStretches(table)) {
    rollups.push_back(EncodeRollup(RollupPart::Of(stretch[step])));
  }
  return rollups;
}

TEST(RollupTest, BucketsAreRoundedDown) {
  EXPECT_EQ(RollupBucketOf(0, 10), 0);
  EXPECT_EQ(RollupBucketOf(10 * kSecond - 1, 10), 0);
  EXPECT_EQ(RollupBucketOf(10 * kSecond, 10), 1);
  EXPECT_EQ(RollupBucketOf(-1, 10), -1);
  EXPECT_EQ(RollupBucketOf(-10 * kSecond, 10), -1);
  EXPECT_EQ(RollupBucketOf(-10 * kSecond - 1, 10), -2);
}

TEST(RollupTest, TicksShareTheirBuckets) {
  const std::vector<std::int64_t> times = {1, 9 * kSecond, 10 * kSecond, 35 * kSecond};
  const std::vector<std::int32_t> batches = {-1, 7, 5, -1};
  const RollupGrid grid = RollUpTicks(times, batches, 10);
  EXPECT_THAT(grid.buckets, ElementsAre(0, 1, 3));
  EXPECT_THAT(grid.tick_counts, ElementsAre(2, 1, 1));
  EXPECT_THAT(grid.last_times_us, ElementsAre(9 * kSecond, 10 * kSecond, 35 * kSecond));
  EXPECT_THAT(grid.first_batches, ElementsAre(7, 5, -1));
  EXPECT_THAT(grid.last_batches, ElementsAre(7, 5, -1));
}

TEST(RollupTest, AColumnSaysOnlyWhatItsTicksDoNot) {
  const std::vector<std::int64_t> times = {1, 2, 3, 10 * kSecond, 11 * kSecond, 20 * kSecond};
  const RollupGrid grid = RollUpTicks(times, std::vector<std::int32_t>(6, -1), 10);
  const RollupColumn whole = Rolled(grid, times, std::vector<double>{3, 1, 2, 5, 5, 9});
  EXPECT_THAT(whole.presence, IsEmpty());
  EXPECT_THAT(whole.counts, IsEmpty());
  EXPECT_THAT(whole.nan_counts, IsEmpty());
  EXPECT_THAT(whole.last_lags_us, IsEmpty());
  EXPECT_THAT(whole.mins, ElementsAre(1, 5, 9));
  EXPECT_THAT(whole.maxs, ElementsAre(3, 5, 9));
  EXPECT_THAT(whole.sums, ElementsAre(6, 10, 9));
  EXPECT_THAT(whole.lasts, ElementsAre(2, 5, 9));

  // Of the first bucket the last sample is NaN; of the second there is none; of the third all are.
  const RollupColumn holed = Rolled(grid, times, std::vector<double>{3, kNan, kNan},
                                    std::vector<std::uint8_t>{0, 1, 1, 0, 0, 1});
  EXPECT_THAT(holed.presence, ElementsAre(1, 0, 1));
  EXPECT_THAT(holed.counts, ElementsAre(2, 1));
  EXPECT_THAT(holed.nan_counts, ElementsAre(1, 1));
  EXPECT_THAT(holed.last_lags_us, ElementsAre(1, 0));
  EXPECT_THAT(holed.mins, ElementsAre(3, 0));
  EXPECT_THAT(holed.lasts, ElementsAre(3, 0));
}

TEST(RollupTest, SumsOfDecimalsAreExact) {
  // Added as doubles, ten tenths are less than 1.
  const std::vector<std::int64_t> times(10, 5);
  const RollupGrid grid = RollUpTicks(times, std::vector<std::int32_t>(10, -1), 60);
  EXPECT_EQ(Rolled(grid, times, std::vector<double>(10, 0.1)).sums[0], 1.0);
  // Beyond 2^53 they are added as they are.
  const RollupColumn large = Rolled(grid, times, std::vector<double>(10, 9e15));
  EXPECT_EQ(large.sums[0], 9e16);
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<double> both(10, 1);
  both[3] = inf;
  both[4] = -inf;
  EXPECT_TRUE(std::isnan(Rolled(grid, times, both).sums[0]));
}

TEST(RollupTest, AConstantTakesOneVector) {
  TickTable table;
  for (int i = 0; i < 600; ++i) table.times_us.push_back(i * kSecond * 20);
  table.batches.assign(600, -1);
  table.columns.emplace_back().values.assign(600, 4.5);
  const std::vector<EncodedRollup> rollups = RollupsOf(table, 0);
  const EncodedRollupColumn& column = rollups.front().columns.front();
  EXPECT_FALSE(column.counts || column.nan_counts || column.last_lags);
  EXPECT_FALSE(column.maxs || column.sums || column.lasts);
  EXPECT_EQ(column.mins.bits.bit_count, 0u);
}

struct Told {
  std::int64_t count = 0, nan_count = 0, last_time_us = 0;
  double min = 0, max = 0, sum = 0, last = 0;
};

// By series and bucket.
using Tale = std::map<std::pair<int, std::int64_t>, Told>;

void Tell(Tale& tale, int series_no, std::int64_t bucket, std::int64_t time_us, double value) {
  Told& told = tale[{series_no, bucket}];
  const bool first = told.count == told.nan_count;
  ++told.count;
  if (std::isnan(value)) {
    ++told.nan_count;
    return;
  }
  told.min = first ? value : std::min(told.min, value);
  told.max = first ? value : std::max(told.max, value);
  told.sum += value;
  told.last = value;
  told.last_time_us = time_us;
}

Tale TaleOf(const TickTable& table, std::int32_t step_seconds) {
  Tale tale;
  for (const TickColumn& column : table.columns) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < table.times_us.size(); ++i) {
      if (!column.presence.empty() && column.presence[i] == 0) continue;
      Tell(tale, Value(column.series_no), RollupBucketOf(table.times_us[i], step_seconds),
           table.times_us[i], column.values[next++]);
    }
  }
  return tale;
}

// Rollups of several stretches may speak of one bucket: put together as a reader does.
Tale TaleOf(const std::vector<EncodedRollup>& rollups) {
  Tale tale;
  for (const EncodedRollup& rollup : rollups) {
    const RollupGrid grid = DecodeRollupGrid(rollup).value();
    for (const EncodedRollupColumn& encoded : rollup.columns) {
      const RollupColumn column = DecodeRollupColumn(encoded, grid).value();
      std::size_t at = 0;
      for (std::size_t i = 0; i < grid.buckets.size(); ++i) {
        if (!column.presence.empty() && column.presence[i] == 0) continue;
        Told& told = tale[{Value(encoded.series_no), grid.buckets[i]}];
        const bool first = told.count == told.nan_count;
        const std::int64_t count = column.counts.empty() ? grid.tick_counts[i] : column.counts[at];
        const std::int64_t nans = column.nan_counts.empty() ? 0 : column.nan_counts[at];
        if (count > nans) {
          told.min = first ? column.mins[at] : std::min(told.min, column.mins[at]);
          told.max = first ? column.maxs[at] : std::max(told.max, column.maxs[at]);
          told.sum += column.sums[at];
          told.last = column.lasts[at];
          told.last_time_us =
              grid.last_times_us[i] - (column.last_lags_us.empty() ? 0 : column.last_lags_us[at]);
        }
        told.count += count;
        told.nan_count += nans;
        ++at;
      }
    }
  }
  return tale;
}

TickTable RandomTable(std::mt19937_64& random) {
  std::uniform_real_distribution<double> uniform;
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  TickTable table;
  const std::size_t count = 1 + random() % 5000;
  const std::int64_t cadence_us = std::int64_t{1} << below(26);
  std::int64_t time_us = (below(2) == 0 ? -1 : 1) * below(1'800'000'000) * kSecond;
  for (std::size_t i = 0; i < count; ++i) {
    table.times_us.push_back(time_us += below(static_cast<std::uint64_t>(cadence_us)));
    table.batches.push_back(below(3) == 0 ? -1 : static_cast<std::int32_t>(i));
  }
  for (int series = 1; series <= 3; ++series) {
    TickColumn column;
    column.series_no = SeriesNo{series};
    const double present = series == 1 ? 1 : uniform(random);
    const double nan = series == 3 ? uniform(random) : 0;
    const int kind = static_cast<int>(below(3));
    for (std::size_t i = 0; i < count; ++i) {
      if (uniform(random) > present) {
        column.presence.push_back(0);
        continue;
      }
      column.presence.push_back(1);
      const double value = kind == 0   ? static_cast<double>(below(100)) / 10
                           : kind == 1 ? uniform(random)
                                       : std::round(uniform(random) * 1e9) / 1e9;
      column.values.push_back(uniform(random) < nan ? kNan : value);
    }
    if (present == 1) column.presence.clear();
    if (!column.values.empty()) table.columns.push_back(std::move(column));
  }
  return table;
}

TEST(RollupTest, TellsOfRandomSamplesWhatCountingThemDoes) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 60; ++round) {
    const TickTable table = RandomTable(random);
    for (std::size_t at = 0; at < kRollupSteps.size(); ++at) {
      const std::int32_t step = kRollupSteps[at];
      SCOPED_TRACE("round " + std::to_string(round) + " step " + std::to_string(step));
      const std::vector<EncodedRollup> rollups = RollupsOf(table, at);
      ASSERT_EQ(rollups.size(), CutStretches(table.times_us).size());
      const Tale expected = TaleOf(table, step);
      const Tale told = TaleOf(rollups);
      ASSERT_EQ(told.size(), expected.size());
      for (const auto& [key, want] : expected) {
        const Told& have = told.at(key);
        ASSERT_EQ(have.count, want.count);
        ASSERT_EQ(have.nan_count, want.nan_count);
        if (want.count == want.nan_count) continue;
        ASSERT_EQ(std::bit_cast<std::uint64_t>(have.min), std::bit_cast<std::uint64_t>(want.min));
        ASSERT_EQ(std::bit_cast<std::uint64_t>(have.max), std::bit_cast<std::uint64_t>(want.max));
        ASSERT_EQ(std::bit_cast<std::uint64_t>(have.last), std::bit_cast<std::uint64_t>(want.last));
        ASSERT_EQ(have.last_time_us, want.last_time_us);
        ASSERT_NEAR(have.sum, want.sum, 1e-9 * std::fabs(want.sum));
      }
    }
  }
}

TEST(RollupTest, VectorsThatContradictEachOtherAreRefused) {
  TickTable table;
  for (int i = 0; i < 100; ++i) table.times_us.push_back(i * kSecond);
  table.batches.assign(100, 3);
  TickColumn column;
  for (int i = 0; i < 100; ++i) {
    column.presence.push_back(i / 10 != 4);
    if (i / 10 != 4) column.values.push_back(i % 7 == 0 ? kNan : i);
  }
  table.columns = {column};
  const EncodedRollup whole = RollupsOf(table, 0).front();
  const EncodedRollupColumn sound = whole.columns.front();
  ASSERT_TRUE(DecodeRollupGrid(whole).ok());
  const RollupGrid grid = DecodeRollupGrid(whole).value();
  ASSERT_TRUE(DecodeRollupColumn(sound, grid).ok());
  ASSERT_NE(sound.relative & kRelativeSums, 0);

  const std::vector<std::function<void(EncodedRollup&)>> grid_damages = {
      [](EncodedRollup& row) { row.bucket_count = -1; },
      [](EncodedRollup& row) { row.bucket_count = 5; },
      [](EncodedRollup& row) { row.step_seconds = 0; },
      [](EncodedRollup& row) { row.buckets.base = INT64_MAX / 100; },
      [](EncodedRollup& row) {
        row.buckets = EncodeIntegers(std::vector<std::int64_t>{0, 1, 2, 3, 3, 5, 6, 7, 8, 9});
      },
      [](EncodedRollup& row) {
        row.buckets = EncodeIntegers(std::vector<std::int64_t>{0, 1, 2, 3, 4, 5, 6, 8, 7, 9});
      },
      [](EncodedRollup& row) { row.last_offsets.base = 10 * kSecond; },
      [](EncodedRollup& row) { row.last_offsets.base = -1; },
      [](EncodedRollup& row) { row.tick_counts.base = -1; },
      [](EncodedRollup& row) { row.first_batches.base = -2; },
      [](EncodedRollup& row) { row.last_batches.base = INT64_C(1) << 40; },
  };
  for (std::size_t i = 0; i < grid_damages.size(); ++i) {
    EncodedRollup damaged = whole;
    grid_damages[i](damaged);
    EXPECT_TRUE(absl::IsDataLoss(DecodeRollupGrid(damaged).status())) << "grid damage " << i;
  }
  const std::vector<std::function<void(EncodedRollupColumn&)>> damages = {
      [](EncodedRollupColumn& row) { row.bucket_count = -1; },
      [](EncodedRollupColumn& row) { row.bucket_count = 8; },
      [](EncodedRollupColumn& row) { row.presence = {}; },
      [](EncodedRollupColumn& row) { row.presence.bytes[0] = '\0'; },
      [](EncodedRollupColumn& row) { row.counts.reset(); },
      [](EncodedRollupColumn& row) { row.nan_counts->bits.bit_count += 1; },
      [](EncodedRollupColumn& row) { row.nan_counts->base = -INT64_MAX; },
      [](EncodedRollupColumn& row) { row.nan_counts->base = 11; },
      [](EncodedRollupColumn& row) { row.counts->base = -1; },
      [](EncodedRollupColumn& row) { row.mins.width = 64; },
      [](EncodedRollupColumn& row) { row.mins.divisor_exponent = 23; },
      [](EncodedRollupColumn& row) { row.sums->width = 64; },
      [](EncodedRollupColumn& row) {
        row.mins = EncodeIntegers(std::vector<std::int64_t>(9, INT64_MAX - 1));
      },
  };
  for (std::size_t i = 0; i < damages.size(); ++i) {
    EncodedRollupColumn damaged = sound;
    damages[i](damaged);
    EXPECT_TRUE(absl::IsDataLoss(DecodeRollupColumn(damaged, grid).status())) << "damage " << i;
  }
}

}  // namespace
}  // namespace stepwell
