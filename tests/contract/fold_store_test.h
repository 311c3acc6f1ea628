// FoldStoreTest: StoreTest, and what went into folds and merges as tables read back as rows, decoded
// and counted. For the tests of folds and merges.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/pg_row_copy.h"
#include "storage/pg_row_read.h"
#include "storage/scaled_column.h"
#include "storage/stretch.h"
#include "storage/vector_codec.h"
#include "tests/contract/store_test.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {

// One sample, as a multiset counts it: values by their bits.
using SampleKey =
    std::tuple<std::int64_t /*trial*/, std::int32_t /*writer*/, std::int32_t /*series*/,
               std::int64_t /*time*/, std::int32_t /*batch*/, std::uint64_t /*value*/>;
using Samples = std::map<SampleKey, int>;

class FoldStoreTest : public StoreTest {
 protected:
  static void Count(const OpenedWriter& writer, const std::vector<TickTable>& tables,
                    Samples& samples) {
    for (const TickTable& table : tables) {
      for (const TickColumn& column : table.columns) {
        std::size_t used = 0;
        for (std::size_t tick = 0; tick < table.times_us.size(); ++tick) {
          if (!column.presence.empty() && column.presence[tick] == 0) continue;
          samples[{Value(writer.trial_id), Value(writer.writer_no), Value(column.series_no),
                   table.times_us[tick], table.batches[tick],
                   std::bit_cast<std::uint64_t>(column.values[used++])}] += 1;
        }
      }
    }
  }

  // All rows of metrics and recent, decoded; checks each row on the way.
  Samples ReadSamples() {
    Samples samples;
    ReadRows("recent", "recent_ticks", samples);
    ReadRows("metrics", "ticks", samples);
    return samples;
  }
  void ReadRows(const std::string& rows_table, const std::string& ticks_table, Samples& samples) {
    struct Ticks {
      std::vector<std::int64_t> times, batches;
    };
    std::map<std::tuple<std::int64_t, std::int32_t, std::int64_t, std::int16_t>, Ticks> all_ticks;
    const bool recent = rows_table == "recent";
    const auto ticks_rows = sql_->Exec(
        SqlOf(absl::StrCat("select ",
                           recent ? "segment, fold_no, received_time_us, series_nos, "
                                  : "0::smallint, 0::bigint, 0::bigint, '{}'::integer[], ",
                           kTicksColumnList, " from stepwell.", ticks_table)));
    ASSERT_TRUE(ticks_rows.ok()) << ticks_rows.status();
    for (int i = 0; i < ticks_rows->row_count(); ++i) {
      const RecentTicksRow row = ReadRecentTicks(*ticks_rows, i);
      const auto count = static_cast<std::size_t>(row.ticks.tick_count);
      Ticks ticks{*DecodeIntegers(row.ticks.times, count),
                  *DecodeIntegers(row.ticks.batches, count)};
      EXPECT_TRUE(std::is_sorted(ticks.times.begin(), ticks.times.end()));
      EXPECT_EQ(ticks.times.front(), row.ticks.first_time_us);
      EXPECT_EQ(ticks.times.back(), row.ticks.last_time_us);
      EXPECT_LE(count, kStretchTicksMax);
      EXPECT_LE(ticks.times.back() - ticks.times.front(), kSlowStretchSpanUs);
      const bool is_new =
          all_ticks
              .emplace(std::tuple(Value(row.place.trial_id), Value(row.place.writer_no),
                                  row.place.tick_no, row.place.keep_class),
                       std::move(ticks))
              .second;
      EXPECT_TRUE(is_new) << "tick_no " << row.place.tick_no << " twice";
    }
    const auto rows = sql_->Exec(
        SqlOf(absl::StrCat("select ", kMetricsColumnList, " from stepwell.", rows_table)));
    ASSERT_TRUE(rows.ok()) << rows.status();
    for (int i = 0; i < rows->row_count(); ++i) {
      const RecentColumnRow row = ReadRecentColumn(*rows, i);
      const auto found = all_ticks.find({Value(row.place.trial_id), Value(row.place.writer_no),
                                         row.place.tick_no, row.place.keep_class});
      ASSERT_TRUE(found != all_ticks.end()) << "no ticks for a row of " << rows_table;
      AddRow(row, found->second.times, found->second.batches, samples);
    }
  }
  static void AddRow(const RecentColumnRow& row, const std::vector<std::int64_t>& times,
                     const std::vector<std::int64_t>& batches, Samples& samples) {
    const EncodedColumn& column = row.column;
    const std::vector<double> values =
        *DecodeValues(column.values, static_cast<std::size_t>(column.sample_count));
    std::size_t used = 0;
    double sum = 0;
    double last = 0;
    int nan_count = 0;
    for (std::size_t tick = 0; tick < times.size(); ++tick) {
      const auto& bits = column.presence;
      if (bits.bit_count > 0 && (bits.bytes[tick / 8] >> (7 - tick % 8) & 1) == 0) continue;
      ASSERT_LT(used, values.size());
      const double value = values[used++];
      if (used == 1) {
        EXPECT_EQ(times[tick], column.first_time_us);
      }
      if (used == values.size()) {
        EXPECT_EQ(times[tick], column.last_time_us);
      }
      if (batches[tick] >= 0) {
        EXPECT_LE(column.first_batch, batches[tick]);
        EXPECT_GE(column.last_batch, batches[tick]);
      }
      samples[{Value(row.place.trial_id), Value(row.place.writer_no), Value(column.series_no),
               times[tick], static_cast<std::int32_t>(batches[tick]),
               std::bit_cast<std::uint64_t>(value)}] += 1;
      if (std::isnan(value)) {
        ++nan_count;
        continue;
      }
      EXPECT_LE(column.min, value);
      EXPECT_GE(column.max, value);
      sum += value;
      last = value;
    }
    EXPECT_EQ(used, values.size());
    EXPECT_EQ(column.nan_count, nan_count);
    if (column.has_numbers()) {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(column.last), std::bit_cast<std::uint64_t>(last));
      // What a chain of additions rounds, integers under a divisor do not.
      if (const ScaledColumn scaled(values); scaled.sums_exactly()) {
        sum = scaled.ValueOf(
            std::accumulate(scaled.integers().begin(), scaled.integers().end(), std::int64_t{0}));
      }
      EXPECT_TRUE(column.sum == sum || (std::isnan(column.sum) && std::isnan(sum)));
    }
  }

  // The ledger says what the tables hold.
  void ExpectUsageAddsUp() {
    const auto held = sql_->Exec(R"(
with rows as (
  select trial_id, received_day, keep_class, series_no, sample_count, first_time_us, last_time_us
  from stepwell.metrics
  union all
  select trial_id, received_day, keep_class, series_no, sample_count, first_time_us, last_time_us
  from stepwell.recent
), held as (
  select r.trial_id, r.received_day, r.keep_class, s.metric_group, count(*) as row_count,
         sum(r.sample_count) as sample_count, min(r.first_time_us) as first_time_us,
         max(r.last_time_us) as last_time_us
  from rows r join stepwell.series s on s.trial_id = r.trial_id and s.series_no = r.series_no
  group by 1, 2, 3, 4
)
select count(*) from held h full join stepwell.usage u using
  (trial_id, received_day, keep_class, metric_group)
where h.row_count is distinct from u.row_count or h.sample_count is distinct from u.sample_count
   or h.first_time_us is distinct from u.first_time_us
   or h.last_time_us is distinct from u.last_time_us or u.byte_count <= 0)");
    ASSERT_TRUE(held.ok()) << held.status();
    EXPECT_EQ(held->Int64(0, 0), 0) << "lines of the ledger differ";
  }
  FoldNo Newest() { return *folds_->NextFoldNo(); }
  // Merges until nothing is ripe; returns the rows taken.
  std::int64_t MergeAll(MergeLimits limits) {
    std::int64_t taken = 0;
    for (int calls = 0; calls < 10'000; ++calls) {
      const auto merged = folds_->Merge(kEpoch, limits);
      EXPECT_TRUE(merged.ok()) << merged.status();
      if (!merged.ok()) return taken;
      taken += merged->recent_rows_taken;
      if (!merged->more) return taken;
    }
    ADD_FAILURE() << "merging never ends";
    return taken;
  }
};

}  // namespace stepwell::testing
