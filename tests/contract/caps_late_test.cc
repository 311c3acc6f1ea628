// Samples that come late, for a stretch whose samples a cap has removed already: nobody can make its rollups anew. What
// is held, the gaps, the ledger and the rollups go on telling the truth, and the caps hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::kDayUs;
using testing::kNowUs;
using testing::Samples;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kSecondUs = 1'000'000;
constexpr std::int64_t kAnHourUs = 3600 * kSecondUs;
// The first moment at which samples received at kNowUs are a day old.
constexpr std::int64_t kADayOldUs = 20'002 * kDayUs;
constexpr int kTicks = 600;

class CapsLate : public CapsStoreTest {
 protected:
  struct Cell {
    std::int64_t count = 0;
    double min = 0, max = 0, sum = 0;

    void Add(double value) {
      min = count == 0 ? value : std::min(min, value);
      max = count == 0 ? value : std::max(max, value);
      sum += value;
      ++count;
    }
  };
  // Series, seconds of a bucket, its number.
  using Cells = std::map<std::tuple<std::int32_t, std::int32_t, std::int64_t>, Cell>;

  CapsLate() { AddSeries(writer_.trial_id, 2); }

  // Folded, and in no leaf yet.
  void Send(const TickTable& table, std::int64_t received_us = kNowUs) {
    const std::vector<TickTable> tables = {table};
    Fill(writer_, tables, received_us);
    for (const TickColumn& column : table.columns) {
      for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
        for (const std::int32_t step : {10, 60}) {
          const std::int64_t bucket = table.times_us[tick] / kSecondUs / step;
          told_[{Value(column.series_no), step, bucket}].Add(column.values[tick]);
        }
      }
    }
  }
  void SendAndMerge(const TickTable& table, std::int64_t received_us = kNowUs) {
    Send(table, received_us);
    MergeNow(received_us);
  }
  // Halfway between the ticks of what begins there, with a peak in its middle.
  static TickTable Late(std::int64_t start_us, int tick_count) {
    TickTable table = Table(2, tick_count, start_us + kSecondUs / 2);
    for (TickColumn& column : table.columns) {
      column.values[static_cast<std::size_t>(tick_count / 2)] = 1e6;
    }
    return table;
  }
  Samples SamplesOf(const std::vector<TickTable>& tables) {
    Samples samples;
    Count(writer_, tables, samples);
    return samples;
  }
  std::int64_t GapSamples() {
    return Number("select coalesce(sum(sample_count), 0)::bigint from stepwell.gaps");
  }
  // The gaps say it, and so does the ledger.
  void ExpectRemoved(std::int64_t samples) {
    EXPECT_EQ(GapSamples(), samples);
    EXPECT_EQ(Number("select sum(removed_sample_count)::bigint from stepwell.usage"), samples);
  }

  // Rollups tell of each sample that was ever sent once, whether it is held or not.
  void ExpectRollupsTellAll() {
    const auto rows = sql_->Exec(R"(
select series_no, step_seconds::integer, floor(extract(epoch from u.t) / step_seconds)::bigint,
       sum(u.n)::bigint, min(u.low), max(u.high), sum(u.total)
from (select * from stepwell.decoded_rollups offset 0) r,
     unnest(r.starts, r.counts, r.mins, r.maxs, r.sums) u (t, n, low, high, total)
where u.n > 0 group by 1, 2, 3)");
    ASSERT_TRUE(rows.ok()) << rows.status();
    Cells told;
    for (int row = 0; row < rows->row_count(); ++row) {
      told[{rows->Int32(row, 0), rows->Int32(row, 1), rows->Int64(row, 2)}] = {
          rows->Int64(row, 3), rows->Float64(row, 4), rows->Float64(row, 5), rows->Float64(row, 6)};
    }
    EXPECT_EQ(told.size(), told_.size());
    for (const auto& [key, sent] : told_) {
      const auto& [series_no, step, bucket] = key;
      const Cell& cell = told[key];
      ASSERT_TRUE(cell.count == sent.count && cell.min == sent.min && cell.max == sent.max &&
                  std::abs(cell.sum - sent.sum) <= 1e-9 * std::abs(sent.sum))
          << "series " << series_no << " step " << step << " bucket " << bucket << ": count "
          << cell.count << "/" << sent.count << " min " << cell.min << "/" << sent.min << " max "
          << cell.max << "/" << sent.max << " sum " << cell.sum << "/" << sent.sum;
    }
  }

  const OpenedWriter writer_ = OpenWriter("t");
  Cells told_;
};

TEST_F(CapsLate, SamplesBehindASweepByAgeAreHeldUntilTheirOwnDayIsOld) {
  SetCaps({}, {.raw_age_seconds = kDay});
  SendAndMerge(Table(2, kTicks));
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 2 * kTicks);
  ASSERT_TRUE(ReadSamples().empty());
  ExpectRollupsTellAll();

  const TickTable late = Late(kNowUs, 100);
  SendAndMerge(late, kADayOldUs);
  EXPECT_EQ(ReadSamples(), SamplesOf({late})) << "their age counts from when they came";
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 0);
  ExpectRemoved(2 * kTicks);
  ExpectRollupsTellAll();
  ExpectNothingVanished();

  EXPECT_EQ(SweepAll(kADayOldUs + 2 * kDayUs).removed.sample_count, 2 * 100);
  EXPECT_TRUE(ReadSamples().empty());
  ExpectRemoved(2 * (kTicks + 100));
  ExpectRollupsTellAll();
  ExpectNothingVanished();
}

// They came in time, and were merged when their day had been given up.
TEST_F(CapsLate, SamplesThatAreMergedBehindASweepByAgeAreInTheRollupsOfTheirDay) {
  SetCaps({}, {.raw_age_seconds = kDay});
  SendAndMerge(Table(2, kTicks));
  Send(Late(kNowUs, 100));
  EXPECT_EQ(SweepWithoutMerges(kADayOldUs).removed.sample_count, 2 * kTicks);
  MergeNow();
  ExpectRollupsTellAll();
  SweepAll(kADayOldUs);
  SweepAll(kADayOldUs);
  EXPECT_TRUE(ReadSamples().empty());
  ExpectRemoved(2 * (kTicks + 100));
  ExpectRollupsTellAll();
  ExpectNothingVanished();
}

TEST_F(CapsLate, SamplesBehindASweepOfASeriesGoWithTheNextOne) {
  SetCaps({}, {.series_samples = kTicks / 2});
  std::vector<TickTable> hours;
  for (int hour = 0; hour < 3; ++hour) {
    hours.push_back(Table(2, kTicks, kNowUs + hour * kAnHourUs));
    SendAndMerge(hours.back());
  }
  EXPECT_EQ(SweepAll().removed.sample_count, 2 * 2 * kTicks);
  EXPECT_EQ(ReadSamples(), SamplesOf({hours[2]}));

  const TickTable late = Late(kNowUs, 100);
  SendAndMerge(late);
  EXPECT_EQ(ReadSamples(), SamplesOf({late, hours[2]}));
  ExpectRollupsTellAll();
  EXPECT_EQ(SweepAll().removed.sample_count, 2 * 100) << "others are newer";
  EXPECT_EQ(ReadSamples(), SamplesOf({hours[2]}));
  ExpectRemoved(2 * (2 * kTicks + 100));
  ExpectRollupsTellAll();
  ExpectNothingVanished();
}

TEST_F(CapsLate, BytesOfATrialHoldWhereSamplesComeBehindASweep) {
  const auto bytes = [&] {
    return Number("select sum(byte_count + rollup_byte_count)::bigint from stepwell.usage");
  };
  for (int hour = 0; hour < 6; ++hour) {
    SendAndMerge(NoisyTable(2, kTicks, kNowUs + hour * kAnHourUs));
  }
  const std::int64_t cap = bytes() * 7 / 10;
  SetCaps(Of(writer_), {.trial_bytes = cap});
  const std::int64_t removed = SweepAll().removed.sample_count;
  EXPECT_GT(removed, 0);
  EXPECT_LE(bytes(), cap);

  for (int part = 0; part < 4; ++part) {
    SendAndMerge(NoisyTable(2, 200, kNowUs + part * 100 * kSecondUs + kSecondUs / 2));
    SweepAll();
    EXPECT_LE(bytes(), cap);
    ExpectNothingVanished();
  }
  EXPECT_GT(GapSamples(), removed);
  ExpectRemoved(GapSamples());
  ExpectRollupsTellAll();
}

}  // namespace
}  // namespace stepwell
