// Folds and merges on PostgreSQL: what goes in as tables comes out as rows, each sample once.
#include "storage/fold_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "storage/fold_plan.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "storage/pg_row_copy.h"
#include "storage/pg_row_read.h"
#include "storage/stretch.h"
#include "storage/vector_codec.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::TestPostgres;
using testing::TestSeed;

constexpr std::int64_t kEpoch = 1;
constexpr std::int64_t kDayUs = 86'400'000'000;
constexpr std::int64_t kNowUs = 20'000 * kDayUs + 5 * 3'600'000'000;  // 05:00 of some day

// One sample, as a multiset counts it: values by their bits.
using SampleKey =
    std::tuple<std::int64_t /*trial*/, std::int32_t /*writer*/, std::int32_t /*series*/,
               std::int64_t /*time*/, std::int32_t /*batch*/, std::uint64_t /*value*/>;
using Samples = std::map<SampleKey, int>;

class FoldStoreContract : public ::testing::Test {
 protected:
  FoldStoreContract() { Reopen({}); }

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

TEST_F(FoldStoreContract, FoldsAndMovesTheMarkTogether) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 3);
  CommitTo(writer, 1, 5);
  const std::vector<TickTable> tables = {Table(3, 10)};
  const auto folded = store_->Fold(kEpoch, {FoldOf(writer, 0, 5, tables)});
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(folded->row_count, 3);
  EXPECT_EQ(folded->sample_count, 30);
  EXPECT_EQ(ingest_->ReadProgress(writer.trial_id, {writer.writer_no})->at(0).folded_sequence, 5u);
  EXPECT_EQ(Number("select min(fold_no) from stepwell.recent"), Value(folded->fold_no));
  EXPECT_EQ(Number("select min(tick_no / 65536) from stepwell.recent"), Value(folded->fold_no));
  Samples expected;
  Count(writer, tables, expected);
  EXPECT_EQ(ReadSamples(), expected);
  ExpectUsageAddsUp();
}

TEST_F(FoldStoreContract, RefusesAFoldThatDoesNotContinue) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  CommitTo(writer, 1, 5);
  const std::vector<TickTable> tables = {Table(1, 10)};
  ASSERT_TRUE(store_->Fold(kEpoch, {FoldOf(writer, 0, 3, tables)}).ok());
  EXPECT_EQ(store_->Fold(kEpoch, {FoldOf(writer, 0, 3, tables)}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_->Fold(kEpoch, {FoldOf(writer, 4, 5, tables)}).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(store_->Fold(kEpoch, {FoldOf(writer, 3, 9, tables)}).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "beyond what is committed";
  EXPECT_EQ(store_->Fold(kEpoch + 1, {FoldOf(writer, 3, 5, tables)}).status().code(),
            absl::StatusCode::kAborted);
  EXPECT_EQ(store_->Fold(kEpoch, {FoldOf(writer, 3, 4, tables), FoldOf(writer, 4, 5, tables)})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  ASSERT_TRUE(store_->Fold(kEpoch, {FoldOf(writer, 3, 5, {})}).ok());
  ExpectUsageAddsUp();
}

TEST_F(FoldStoreContract, MergesManySmallRowsIntoOnePerSeries) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 5);
  CommitTo(writer, 1, 100);
  std::vector<std::vector<TickTable>> all;
  Samples expected;
  for (int fold = 0; fold < 30; ++fold) {
    all.push_back({Table(5, 10, kNowUs + fold * 10'000'000)});
    Count(writer, all.back(), expected);
    ASSERT_TRUE(store_->Fold(kEpoch, {FoldOf(writer, fold, fold + 1, all.back())}).ok());
  }
  MergeLimits limits{.fold_no_max = Newest(), .now_us = kNowUs + 3'000'000'000};
  EXPECT_EQ(MergeAll(limits), 0) << "nothing is ripe";
  limits.now_us = kNowUs + 3'600'000'001;
  limits.rows_max = 70;  // two series at a time
  MergeAll(limits);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.recent_ticks"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 5);
  EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 1);
  EXPECT_EQ(Number("select count(*) from stepwell.metrics_k0_20241004"), 5);
  EXPECT_EQ(ReadSamples(), expected);
  ExpectUsageAddsUp();
}

TEST_F(FoldStoreContract, LeavesFoldsAboveAPinAlone) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  CommitTo(writer, 1, 2);
  const std::vector<TickTable> tables = {Table(1, 10)};
  const auto first = store_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)});
  ASSERT_TRUE(store_->Fold(kEpoch, {FoldOf(writer, 1, 2, tables)}).ok());
  MergeAll({.fold_no_max = first->fold_no, .ripe_tick_count = 1, .now_us = kNowUs});
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.metrics"), 10);
}

TEST_F(FoldStoreContract, KnowsWhatIsRipe) {
  struct Row {
    std::string name;
    int tick_count;
    std::int64_t age_us;
    bool closed;
    bool ripe;
  };
  const std::int64_t hour = 3'600'000'000;
  for (const Row& row : std::vector<Row>{{"young", 100, hour / 2, false, false},
                                         {"an hour old", 100, hour, false, true},
                                         {"slow, an hour old", 59, hour, false, false},
                                         {"slow, a day old", 59, 24 * hour, false, true},
                                         {"full", 3600, 1, false, true},
                                         {"closed", 1, 1, true, true}}) {
    SCOPED_TRACE(row.name);
    const OpenedWriter writer = OpenWriter(row.name);
    AddSeries(writer.trial_id, 1);
    CommitTo(writer, 1, 1,
             row.closed ? std::optional(WriterState::kClosed) : std::optional<WriterState>());
    const std::vector<TickTable> tables = {Table(1, row.tick_count)};
    // Received so that its day is not over: a stretch of a day that is over waits an hour only.
    const std::int64_t received_us = 20'000 * kDayUs + 1;
    ASSERT_TRUE(store_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables, received_us)}).ok());
    MergeAll({.fold_no_max = Newest(), .now_us = received_us + row.age_us});
    EXPECT_EQ(Number(absl::StrCat("select count(*) from stepwell.metrics where trial_id = ",
                                  Value(writer.trial_id))),
              row.ripe ? 1 : 0);
    ASSERT_TRUE(
        sql_->ExecScript("delete from stepwell.recent; delete from stepwell.recent_ticks").ok());
  }
}

TEST_F(FoldStoreContract, MergesAreTheOwnersOnly) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 1);
  CommitTo(writer, 1, 1, WriterState::kClosed);
  const std::vector<TickTable> tables = {Table(1, 10)};
  ASSERT_TRUE(store_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)}).ok());
  ASSERT_TRUE(ingest_->SetTrialState(writer.trial_id, TrialState::kCompleted, kEpoch).ok());
  // At rest, but not merged: the next owner fences it all the same, and may merge it.
  ASSERT_TRUE(ingest_->FenceTrials(2).ok());
  const MergeLimits limits{.fold_no_max = Newest(), .now_us = kNowUs};
  EXPECT_EQ(store_->Merge(1, limits).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
  const auto merged = store_->Merge(2, limits);
  ASSERT_TRUE(merged.ok()) << merged.status();
  EXPECT_EQ(merged->metrics_rows_made, 1);
}

TEST_F(FoldStoreContract, SkipsRowsThatAreDamaged) {
  const OpenedWriter bad = OpenWriter("bad");
  const OpenedWriter good = OpenWriter("good");
  const std::vector<TickTable> tables = {Table(1, 10)};
  for (const OpenedWriter& writer : {bad, good}) {
    AddSeries(writer.trial_id, 1);
    CommitTo(writer, 1, 1, WriterState::kClosed);
    ASSERT_TRUE(store_->Fold(kEpoch, {FoldOf(writer, 0, 1, tables)}).ok());
  }
  ASSERT_TRUE(
      sql_->Exec("update stepwell.recent set form = 77 where trial_id = $1", {Value(bad.trial_id)})
          .ok());
  MergeAll({.fold_no_max = Newest(), .now_us = kNowUs});
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 1);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 1);
}

// Random tables of random writers, folded and merged at random, against a multiset.
TEST_F(FoldStoreContract, KeepsEachSampleOnce) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  struct Model {
    OpenedWriter writer;
    std::uint64_t sequence = 0;
  };
  std::vector<Model> models;
  for (int i = 0; i < 4; ++i) {
    models.push_back({.writer = OpenWriter(i % 2 == 0 ? "a" : "b")});
    AddSeries(models.back().writer.trial_id, 40);
    CommitTo(models.back().writer, 1, 1000);
  }
  Samples expected;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<TickTable>> tables(models.size());
    std::vector<WriterFold> folds;
    for (std::size_t i = 0; i < models.size(); ++i) {
      if (below(3) == 0) continue;
      for (std::uint64_t t = 0; t <= below(4); ++t) {
        TickTable& table = tables[i].emplace_back();
        table.tick_group = static_cast<std::uint32_t>(below(3));
        const std::uint64_t tick_count = below(30) == 0 ? 4000 : below(40);
        std::int64_t at = kNowUs + static_cast<std::int64_t>(below(7200)) * 1'000'000;
        if (below(20) == 0) at = 0;
        for (std::uint64_t tick = 0; tick < tick_count; ++tick) {
          at += static_cast<std::int64_t>(below(2'000'000)) - (below(10) == 0 ? 3'000'000 : 0);
          table.times_us.push_back(at);
          table.batches.push_back(static_cast<std::int32_t>(below(100)) - 1);
        }
        std::set<std::int32_t> series;
        for (std::uint64_t c = 0; c < below(8); ++c) {
          series.insert(static_cast<std::int32_t>(1 + below(40)));
        }
        for (const std::int32_t series_no : series) {
          TickColumn& column = table.columns.emplace_back();
          column.series_no = SeriesNo{series_no};
          const bool sparse = below(3) == 0;
          for (std::uint64_t tick = 0; tick < tick_count; ++tick) {
            if (sparse) column.presence.push_back(below(3) == 0 ? 0 : 1);
            if (sparse && column.presence.back() == 0) continue;
            column.values.push_back(below(50) == 0 ? std::bit_cast<double>(random())
                                                   : static_cast<double>(below(1000)) / 100);
          }
        }
      }
      Count(models[i].writer, tables[i], expected);
      const std::uint64_t from = models[i].sequence;
      models[i].sequence += 1 + below(3);
      WriterFold fold = FoldOf(models[i].writer, from, models[i].sequence, tables[i]);
      if (below(4) == 0) fold.parts[0].received_time_us += kDayUs;
      folds.push_back(fold);
    }
    const auto folded = store_->Fold(kEpoch, folds);
    ASSERT_TRUE(folded.ok()) << folded.status();
    if (below(10) == 0) Reopen({});
    if (below(3) == 0) {
      const MergeLimits limits{.fold_no_max = folded->fold_no,
                               .ripe_tick_count = static_cast<std::int32_t>(1 + below(300)),
                               .now_us = kNowUs,
                               .rows_max = static_cast<std::int32_t>(1 + below(200))};
      for (std::uint64_t call = 0; call <= below(6); ++call) {
        const auto merged = store_->Merge(kEpoch, limits);
        ASSERT_TRUE(merged.ok()) << merged.status();
      }
    }
    if (round % 20 == 19) {
      ASSERT_TRUE(ReadSamples() == expected) << "round " << round;
      ExpectUsageAddsUp();
    }
  }
  MergeAll({.fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs});
  EXPECT_TRUE(ReadSamples() == expected);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.recent_ticks"), 0);
  ExpectUsageAddsUp();
}

}  // namespace
}  // namespace stepwell
