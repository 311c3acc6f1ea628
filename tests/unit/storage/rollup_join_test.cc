// Rollups that are joined piece by piece, in any order of time, against one rollup of all samples.
#include "storage/rollup_join.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "storage/rollup_plan.h"
#include "storage/rollup_stretches.h"
#include "storage/stretch.h"
#include "storage/tick_join.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSecond = 1'000'000;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TickTable Table(const std::vector<std::int64_t>& times_us, const std::vector<double>& values,
                int series_no = 1) {
  TickTable table;
  table.times_us = times_us;
  table.batches.assign(times_us.size(), -1);
  table.columns.push_back({.series_no = SeriesNo{series_no}, .values = values, .presence = {}});
  return table;
}

Rollup OfTenSeconds(const TickTable& table) { return RollUpStretches(table).at(0)[0]; }

Rollup Join(const std::vector<Rollup>& rollups) {
  std::vector<RollupPart> parts;
  for (const Rollup& rollup : rollups) parts.push_back(RollupPart::Of(rollup));
  return JoinRollups(parts);
}

TEST(RollupJoinTest, ASharedBucketSaysWhatBothPartsSay) {
  const Rollup joined = Join({OfTenSeconds(Table({8 * kSecond, 12 * kSecond}, {0.1, 5})),
                              OfTenSeconds(Table({9 * kSecond, 31 * kSecond}, {0.2, 7}))});
  EXPECT_THAT(joined.grid.buckets, ElementsAre(0, 1, 3));
  EXPECT_THAT(joined.grid.tick_counts, ElementsAre(2, 1, 1));
  EXPECT_THAT(joined.grid.last_times_us, ElementsAre(9 * kSecond, 12 * kSecond, 31 * kSecond));
  EXPECT_EQ(joined.first_time_us, 8 * kSecond);
  EXPECT_EQ(joined.last_time_us, 31 * kSecond);
  const RollupColumn& column = joined.series.at(0).column;
  EXPECT_THAT(column.counts, IsEmpty()) << "each tick has a sample";
  EXPECT_THAT(column.mins, ElementsAre(0.1, 5, 7));
  EXPECT_THAT(column.maxs, ElementsAre(0.2, 5, 7));
  EXPECT_THAT(column.sums, ElementsAre(0.3, 5, 7)) << "exact, rounded once";
  EXPECT_THAT(column.lasts, ElementsAre(0.2, 5, 7));
  EXPECT_THAT(column.last_lags_us, IsEmpty());
}

TEST(RollupJoinTest, ALateSampleIsNotTheLastUnlessItsTimeIs) {
  const Rollup joined =
      Join({OfTenSeconds(Table({5 * kSecond}, {1})), OfTenSeconds(Table({3 * kSecond}, {9})),
            OfTenSeconds(Table({5 * kSecond}, {2}))});
  EXPECT_THAT(joined.series.at(0).column.lasts, ElementsAre(2)) << "of one time the later part's";
  EXPECT_THAT(joined.series.at(0).column.maxs, ElementsAre(9));
  EXPECT_EQ(joined.series.at(0).first_time_us, 3 * kSecond);
}

TEST(RollupJoinTest, SeriesOfSomePartsAloneArePresentInTheirBuckets) {
  const Rollup joined = Join({OfTenSeconds(Table({1, 11 * kSecond}, {1, kNan}, 7)),
                              OfTenSeconds(Table({2, 21 * kSecond}, {3, 4}, 5))});
  ASSERT_EQ(joined.series.size(), 2u);
  EXPECT_EQ(joined.series[0].series_no, SeriesNo{5});
  EXPECT_THAT(joined.series[0].column.presence, ElementsAre(1, 0, 1));
  EXPECT_THAT(joined.series[0].column.counts, ElementsAre(1, 1));
  EXPECT_THAT(joined.series[1].column.presence, ElementsAre(1, 1, 0));
  EXPECT_THAT(joined.series[1].column.nan_counts, ElementsAre(0, 1));
  EXPECT_THAT(joined.series[1].column.last_lags_us, ElementsAre(1, 0));
}

// --- random ---

std::vector<std::uint64_t> Bits(const std::vector<double>& values) {
  std::vector<std::uint64_t> bits;
  for (const double value : values) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}

// Series 1 has all samples, tenths; 2 some of them; 3 NaN among eighths; 4 any doubles.
double ValueAt(int series_no, std::int64_t time_us) {
  std::mt19937_64 random(static_cast<std::uint64_t>(time_us) * 31 +
                         static_cast<std::uint64_t>(series_no));
  random();
  const auto k = static_cast<double>(random() % 2000) - 1000;
  if (series_no == 3) return random() % 3 == 0 ? kNan : k / 8;
  return series_no == 4 ? k / 3 : k / 10;
}

// A stretch that may be late, sparse, or over others.
TickTable RandomStretch(std::mt19937_64& random, std::int64_t now_us) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  TickTable table;
  std::int64_t time_us = now_us;
  if (below(4) == 0) time_us -= below(7'200) * kSecond;
  if (below(20) == 0) time_us -= below(60) * 86'400 * kSecond;
  const std::int64_t cadence_us = below(3) == 0 ? 10 * kSecond : 100'000;
  for (std::int64_t left = 1 + below(300); left > 0; --left) {
    table.times_us.push_back(time_us += below(static_cast<std::uint64_t>(cadence_us)));
    table.batches.push_back(static_cast<std::int32_t>(below(50)) - 1);
  }
  for (int series_no = 1; series_no <= 4; ++series_no) {
    if (series_no > 1 && below(4) == 0) continue;
    TickColumn& column = table.columns.emplace_back();
    column.series_no = SeriesNo{series_no};
    for (const std::int64_t at_us : table.times_us) {
      const bool present = series_no != 2 || below(2) == 0;
      if (series_no == 2) column.presence.push_back(present ? 1 : 0);
      if (present) column.values.push_back(ValueAt(series_no, at_us));
    }
    if (column.values.empty()) table.columns.pop_back();
  }
  return table;
}

Rollup AllAtOnce(const TickTable& table, std::size_t step_index) {
  Rollup rollup;
  rollup.grid = RollUpTicks(table.times_us, table.batches, kRollupSteps[step_index]);
  rollup.first_time_us = table.times_us.front();
  rollup.last_time_us = table.times_us.back();
  for (const TickColumn& column : table.columns) {
    rollup.series.push_back({column.series_no, 0, 0,
                             RollUpColumn(rollup.grid, table.times_us, column.values,
                                          ScaledColumn(column.values), column.presence)});
  }
  std::sort(rollup.series.begin(), rollup.series.end(),
            [](const auto& left, const auto& right) { return left.series_no < right.series_no; });
  return rollup;
}

void ExpectSame(const Rollup& told, const Rollup& expected) {
  EXPECT_EQ(told.first_time_us, expected.first_time_us);
  EXPECT_EQ(told.last_time_us, expected.last_time_us);
  EXPECT_EQ(told.grid.buckets, expected.grid.buckets);
  EXPECT_EQ(told.grid.tick_counts, expected.grid.tick_counts);
  EXPECT_EQ(told.grid.last_times_us, expected.grid.last_times_us);
  EXPECT_EQ(told.grid.first_batches, expected.grid.first_batches);
  EXPECT_EQ(told.grid.last_batches, expected.grid.last_batches);
  ASSERT_EQ(told.series.size(), expected.series.size());
  for (std::size_t i = 0; i < told.series.size(); ++i) {
    const RollupColumn& have = told.series[i].column;
    const RollupColumn& want = expected.series[i].column;
    SCOPED_TRACE("series " + std::to_string(Value(told.series[i].series_no)));
    ASSERT_EQ(told.series[i].series_no, expected.series[i].series_no);
    EXPECT_EQ(have.presence, want.presence);
    EXPECT_EQ(have.counts, want.counts);
    EXPECT_EQ(have.nan_counts, want.nan_counts);
    EXPECT_EQ(have.last_lags_us, want.last_lags_us);
    EXPECT_EQ(have.mins, want.mins);
    EXPECT_EQ(have.maxs, want.maxs);
    EXPECT_EQ(Bits(have.lasts), Bits(want.lasts));
    ASSERT_EQ(have.sums.size(), want.sums.size());
    if (told.series[i].series_no != SeriesNo{4}) {
      EXPECT_EQ(have.sums, want.sums);
      continue;
    }
    for (std::size_t at = 0; at < have.sums.size(); ++at) {
      EXPECT_NEAR(have.sums[at], want.sums[at], 1e-9 * (1 + std::fabs(want.sums[at])));
    }
  }
}

// As merges do: each brings some stretches, finds narrow rows, and joins what the plan says.
class Rows {
 public:
  void Merge(const std::vector<StretchRollups>& stretches, std::size_t step_index) {
    std::vector<RollupPiece> pieces, narrow;
    for (const StretchRollups& stretch : stretches) pieces.push_back(PieceOf(stretch[step_index]));
    std::vector<std::size_t> narrow_rows;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (static_cast<std::int64_t>(rows_[i].grid.buckets.size()) >= kNarrowRollupBuckets) continue;
      narrow.push_back(PieceOf(rows_[i]));
      narrow_rows.push_back(i);
    }
    std::vector<Rollup> made;
    std::vector<bool> gone(rows_.size(), false);
    std::size_t placed = 0;
    for (const PlannedRollup& planned : PlanRollups(pieces, narrow)) {
      std::vector<RollupPart> parts;
      for (const std::size_t index : planned.narrow) {
        parts.push_back(RollupPart::Of(rows_[narrow_rows[index]]));
        EXPECT_FALSE(gone[narrow_rows[index]]) << "joined twice";
        gone[narrow_rows[index]] = true;
      }
      for (std::size_t i = 0; i < planned.stretch_count; ++i, ++placed) {
        parts.push_back(RollupPart::Of(stretches[planned.first_stretch + i][step_index]));
      }
      made.push_back(JoinRollups(parts));
      EXPECT_TRUE(parts.size() == 1 ||
                  made.back().last_time_us - made.back().first_time_us <= kSlowStretchSpanUs);
    }
    EXPECT_EQ(placed, stretches.size());
    std::vector<Rollup> left;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!gone[i]) left.push_back(std::move(rows_[i]));
    }
    rows_ = std::move(left);
    std::move(made.begin(), made.end(), std::back_inserter(rows_));
  }
  const std::vector<Rollup>& rows() const { return rows_; }

 private:
  static RollupPiece PieceOf(const Rollup& rollup) {
    return RollupPiece::Of(rollup.grid, rollup.first_time_us, rollup.last_time_us);
  }
  std::vector<Rollup> rows_;
};

TEST(RollupJoinTest, RandomStretchesJoinedBitByBitSayWhatAllAtOnceDoes) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 6; ++round) {
    std::vector<TickTable> tables;
    std::array<Rows, kRollupSteps.size()> rows;
    std::int64_t now_us = 1'700'000'000 * kSecond;
    TickJoin all;
    for (int merge = 0; merge < 60; ++merge) {
      TickJoin merged;
      for (std::uint64_t left = 1 + random() % 3; left > 0; --left) {
        const TickTable table = RandomStretch(random, now_us += 36 * kSecond);
        ASSERT_TRUE(merged.Add(table).ok());
        ASSERT_TRUE(all.Add(table).ok());
      }
      const std::vector<StretchRollups> stretches = RollUpStretches(merged.Take());
      for (std::size_t step = 0; step < rows.size(); ++step) rows[step].Merge(stretches, step);
    }
    const TickTable table = all.Take();
    for (std::size_t step = 0; step < rows.size(); ++step) {
      SCOPED_TRACE("round " + std::to_string(round) + " step " + std::to_string(step));
      ExpectSame(Join(rows[step].rows()), AllAtOnce(table, step));
    }
    if (HasFailure()) break;
  }
}

// Samples each 10 ms: stretches of 36 s, one merge each.
TEST(RollupJoinTest, ADayOfShortStretchesTakesAboutADayOfFullRows) {
  std::array<Rows, kRollupSteps.size()> rows;
  for (std::int64_t start_us = 0; start_us < 86'400 * kSecond; start_us += 36 * kSecond) {
    TickTable table = Table({}, {});
    for (int i = 0; i < 36; ++i) {
      table.times_us.push_back(start_us + i * kSecond);
      table.batches.push_back(-1);
      table.columns[0].values.push_back(i);
    }
    const auto stretches = RollUpStretches(table);
    for (std::size_t step = 0; step < rows.size(); ++step) rows[step].Merge(stretches, step);
  }
  // 8640 buckets and 1440; what is narrow at the end comes on top.
  EXPECT_LE(rows[0].rows().size(), 24u + kSmallRollupsMax + 6);
  EXPECT_LE(rows[1].rows().size(), 4u + kSmallRollupsMax + 6);
}

}  // namespace
}  // namespace stepwell
