// FoldStoreTest: a fold store on a fresh database; tables in, rows out, decoded and counted. For the
// tests of folds and merges.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "storage/pg_row_copy.h"
#include "storage/pg_row_read.h"
#include "storage/stretch.h"
#include "storage/vector_codec.h"
#include "tests/support/postgres.h"

namespace stepwell::testing {

inline constexpr std::int64_t kEpoch = 1;
inline constexpr std::int64_t kDayUs = 86'400'000'000;
inline constexpr std::int64_t kNowUs = 20'000 * kDayUs + 5 * 3'600'000'000;  // 05:00 of some day

// One sample, as a multiset counts it: values by their bits.
using SampleKey =
    std::tuple<std::int64_t /*trial*/, std::int32_t /*writer*/, std::int32_t /*series*/,
               std::int64_t /*time*/, std::int32_t /*batch*/, std::uint64_t /*value*/>;
using Samples = std::map<SampleKey, int>;

class FoldStoreTest : public ::testing::Test {
 protected:
  FoldStoreTest() { Reopen({}); }

  void Reopen(RecentRing::Limits recent) {
    auto ingest = PgIngestStore::Open({.url = url_}, journal_);
    ASSERT_TRUE(ingest.ok()) << ingest.status();
    ingest_ = *std::move(ingest);
    auto folds = PgFoldStore::Open({.url = url_, .recent = recent}, journal_);
    ASSERT_TRUE(folds.ok()) << folds.status();
    store_ = *std::move(folds);
  }

  OpenedWriter OpenWriter(const std::string& trial) {
    OpenWriterRequest request;
    request.trial.external_id = trial;
    request.writer = Uuid::Random();
    request.attempt_key = "job";
    request.owner_epoch = kEpoch;
    auto opened = ingest_->OpenWriter(request);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return *opened;
  }
  void AddSeries(TrialId trial_id, int count) {
    std::vector<SeriesDefinition> definitions;
    for (int i = 0; i < count; ++i) {
      SeriesDefinition& definition = definitions.emplace_back();
      definition.key.metric_group = i % 2 == 0 ? "gpu" : "timing";
      definition.key.name = absl::StrCat("s", i);
    }
    const auto numbers = ingest_->FindOrCreateSeries(trial_id, definitions, 10'000);
    ASSERT_TRUE(numbers.ok()) << numbers.status();
  }
  // Commits sequences up to `last`, so that folds may follow.
  void CommitTo(const OpenedWriter& writer, std::uint64_t first, std::uint64_t last,
                std::optional<WriterState> closing = std::nullopt) {
    CommitGroupRequest request;
    request.owner_epoch = kEpoch;
    request.received_time_us = kNowUs;
    WriterAdvance& advance = request.advances.emplace_back();
    advance.trial_id = writer.trial_id;
    advance.writer_no = writer.writer_no;
    advance.generation = writer.generation;
    advance.first_sequence = first;
    advance.last_sequence = last;
    advance.closing = closing;
    const auto results = ingest_->Commit(request);
    ASSERT_TRUE(results.ok()) << results.status();
    ASSERT_EQ(results->at(0).outcome, AdvanceOutcome::kCommitted);
  }
  static WriterFold FoldOf(const OpenedWriter& writer, std::uint64_t from, std::uint64_t to,
                           const std::vector<TickTable>& tables,
                           std::int64_t received_us = kNowUs) {
    WriterFold fold;
    fold.trial_id = writer.trial_id;
    fold.writer_no = writer.writer_no;
    fold.from_sequence_exclusive = from;
    fold.to_sequence = to;
    fold.parts.push_back({.received_time_us = received_us, .tables = &tables});
    return fold;
  }
  // `tick_count` ticks a second apart, all series on each.
  static TickTable Table(int series_count, int tick_count, std::int64_t start_us = kNowUs) {
    TickTable table;
    table.tick_group = 1;
    for (int tick = 0; tick < tick_count; ++tick) {
      table.times_us.push_back(start_us + std::int64_t{tick} * 1'000'000);
      table.batches.push_back(tick);
    }
    for (int series = 1; series <= series_count; ++series) {
      TickColumn& column = table.columns.emplace_back();
      column.series_no = SeriesNo{series};
      for (int tick = 0; tick < tick_count; ++tick) column.values.push_back(series + tick * 0.5);
    }
    return table;
  }
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
    std::map<std::tuple<std::int64_t, std::int32_t, std::int64_t>, Ticks> all_ticks;
    const bool recent = rows_table == "recent";
    const auto ticks_rows =
        sql_->Exec(absl::StrCat("select ",
                                recent ? "segment, fold_no, received_time_us, series_nos, "
                                       : "0::smallint, 0::bigint, 0::bigint, '{}'::integer[], ",
                                kTicksColumnList, " from stepwell.", ticks_table)
                       .c_str());
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
      const bool is_new = all_ticks
                              .emplace(std::tuple(Value(row.place.trial_id),
                                                  Value(row.place.writer_no), row.place.tick_no),
                                       std::move(ticks))
                              .second;
      EXPECT_TRUE(is_new) << "tick_no " << row.place.tick_no << " twice";
    }
    const auto rows = sql_->Exec(
        absl::StrCat("select ", kMetricsColumnList, " from stepwell.", rows_table).c_str());
    ASSERT_TRUE(rows.ok()) << rows.status();
    for (int i = 0; i < rows->row_count(); ++i) {
      const RecentColumnRow row = ReadRecentColumn(*rows, i);
      const auto found = all_ticks.find(
          {Value(row.place.trial_id), Value(row.place.writer_no), row.place.tick_no});
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
  std::int64_t Number(const std::string& sql) {
    const auto row = sql_->Exec(sql.c_str());
    EXPECT_TRUE(row.ok()) << row.status() << " " << sql;
    return row.ok() ? row->Int64(0, 0) : -1;
  }
  FoldNo Newest() { return *store_->NextFoldNo(); }
  // Merges until nothing is ripe; returns the rows taken.
  std::int64_t MergeAll(MergeLimits limits) {
    std::int64_t taken = 0;
    for (int calls = 0; calls < 10'000; ++calls) {
      const auto merged = store_->Merge(kEpoch, limits);
      EXPECT_TRUE(merged.ok()) << merged.status();
      if (!merged.ok()) return taken;
      taken += merged->recent_rows_taken;
      if (!merged->more) return taken;
    }
    ADD_FAILURE() << "merging never ends";
    return taken;
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  const std::unique_ptr<PgConnection> sql_ = Connect(url_);
  const std::shared_ptr<JournalRing> journal_ = std::make_shared<JournalRing>();
  std::unique_ptr<PgIngestStore> ingest_;
  std::unique_ptr<PgFoldStore> store_;
};

}  // namespace stepwell::testing
