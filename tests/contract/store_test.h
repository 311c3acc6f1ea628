// StoreTest: an ingest store and a fold store on one fresh database, and what every test of them does:
// open writers, commit, fold, ask with SQL behind their back. The base of FoldStoreTest and
// PgStoreTest.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/pg_fold_store.h"
#include "storage/pg_ingest_store.h"
#include "tests/support/postgres.h"
#include "tests/support/sql_of.h"

namespace stepwell::testing {

inline constexpr std::int64_t kEpoch = 1;
inline constexpr std::int64_t kDayUs = 86'400'000'000;
inline constexpr std::int64_t kNowUs = 20'000 * kDayUs + 5 * 3'600'000'000;  // 05:00 of some day

class StoreTest : public ::testing::Test {
 protected:
  StoreTest() { Reopen(); }

  void Reopen(RecentRing::Limits recent = {}) {
    auto ingest = PgIngestStore::Open(
        {.url = url_, .owned_place = owned_place_, .at_point = at_point_}, journal_);
    ASSERT_TRUE(ingest.ok()) << ingest.status();
    ingest_ = *std::move(ingest);
    folds_ = OpenFolds(recent);
  }
  // Another master's, say.
  std::unique_ptr<PgFoldStore> OpenFolds(RecentRing::Limits recent = {}) {
    // FoldBulk takes all for bulk.
    auto folds = PgFoldStore::Open(
        {.url = url_, .recent = recent, .bulk_ticks = 1, .owned_place = owned_place_}, journal_);
    EXPECT_TRUE(folds.ok()) << folds.status();
    return folds.ok() ? *std::move(folds) : nullptr;
  }
  OpenedWriter OpenWriter(const std::string& trial, std::int64_t owner_epoch = kEpoch,
                          const Uuid& writer = Uuid::Random()) {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = trial;
    request.writer = writer;
    request.attempt_key = "job";
    request.owner_epoch = owner_epoch;
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
  static WriterAdvance Advance(const OpenedWriter& writer, std::uint64_t first,
                               std::optional<std::uint64_t> last = std::nullopt) {
    WriterAdvance advance;
    advance.trial_id = writer.trial_id;
    advance.writer_no = writer.writer_no;
    advance.generation = writer.generation;
    advance.first_sequence = first;
    advance.last_sequence = last.value_or(first);
    advance.payload = absl::StrCat("chunk ", first);
    return advance;
  }
  static CommitGroupRequest Group(std::vector<WriterAdvance> advances) {
    return {.owner_epoch = kEpoch, .received_time_us = kNowUs, .advances = std::move(advances)};
  }
  // Commits sequences up to `last`, so that folds may follow.
  void CommitTo(const OpenedWriter& writer, std::uint64_t first, std::uint64_t last,
                std::optional<WriterState> closing = std::nullopt) {
    WriterAdvance advance = Advance(writer, first, last);
    advance.closing = closing;
    const auto results = ingest_->Commit(Group({advance}));
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
  // The fold points to its tables: they must outlive it.
  static WriterFold FoldOf(const OpenedWriter& writer, std::uint64_t from, std::uint64_t to,
                           const std::vector<TickTable>&& tables,
                           std::int64_t received_us = kNowUs) = delete;
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
  WriterProgress Progress(const OpenedWriter& writer) {
    const auto progress = ingest_->ReadProgress(writer.trial_id, {writer.writer_no});
    EXPECT_TRUE(progress.ok()) << progress.status();
    return progress.ok() ? progress->at(0) : WriterProgress{};
  }
  std::uint64_t Committed(const OpenedWriter& writer) {
    return Progress(writer).committed_sequence;
  }
  std::int64_t Number(const std::string& sql) {
    const auto row = sql_->Exec(SqlOf(sql));
    EXPECT_TRUE(row.ok()) << row.status() << " " << sql;
    return row.ok() ? row->Int64(0, 0) : -1;
  }
  std::string Text(const std::string& sql) {
    const auto row = sql_->Exec(SqlOf(sql));
    EXPECT_TRUE(row.ok()) << row.status() << " " << sql;
    return row.ok() ? std::string(row->Text(0, 0)) : "";
  }
  void Run(const std::string& sql) {
    const absl::Status status = sql_->ExecScript(SqlOf(sql));
    ASSERT_TRUE(status.ok()) << status << " " << sql;
  }
  // As if folds had run; they leave the rest of the writers' rows as it is.
  void MarkAllFolded() {
    Run("update stepwell.writers w set folded_sequence = p.committed_sequence "
        "from stepwell.writer_progress p "
        "where p.trial_id = w.trial_id and p.writer_no = w.writer_no");
  }
  std::int64_t JournalRows() {
    std::int64_t rows = 0;
    for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
      rows += Number(absl::StrCat("select count(*) from stepwell.journal_", i));
    }
    return rows;
  }

  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  const std::unique_ptr<PgConnection> sql_ = Connect(url_);
  const std::shared_ptr<JournalRing> journal_ = std::make_shared<JournalRing>();
  const std::shared_ptr<OwnedPlace> owned_place_ = std::make_shared<OwnedPlace>();
  std::function<void(std::string_view, int)> at_point_;
  std::unique_ptr<PgIngestStore> ingest_;
  std::unique_ptr<PgFoldStore> folds_;
};

}  // namespace stepwell::testing
