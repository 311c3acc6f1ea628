// What opening, defining, committing, folding and merging look at, by PostgreSQL's own count: nothing
// that belongs to trials is read but by an index, and a thousand other trials change nothing. Read as a
// whole is what is not merged yet, which is what merges pick from; and once, when a master begins,
// the segments of journal and recent, and which days have rollups that wait.
#include <map>
#include <string>

#include "storage/gap_ledger.h"
#include "tests/contract/query/many_trials.h"
#include "tests/support/child_process.h"

namespace stepwell {
namespace {

constexpr int kManyTrials = 1000;
// Far from the numbers that trials get by themselves.
constexpr int kFirstCopy = 1000;

class WriterPlansTest : public ManyTrialsTest {
 protected:
  struct Reads {
    std::int64_t scans = 0;      // of the whole table
    std::int64_t scan_rows = 0;  // that they saw
    std::int64_t index_rows = 0;
  };
  // By table, all leaves of one together.
  using ReadsByTable = std::map<std::string, Reads>;

  void OpenStores() {
    ingest_ = *PgIngestStore::Open({.url = url_}, journal_);
    folds_ = *PgFoldStore::Open({.url = url_}, journal_);
  }
  // Their backends tell what they counted as they end.
  void CloseStores() {
    ingest_.reset();
    folds_.reset();
    ASSERT_TRUE(testing::Eventually(
        [&] {
          const auto left = connection_->Exec(
              "select count(*) from pg_stat_activity where datname = current_database() "
              "and pid <> pg_backend_pid() and backend_type = 'client backend'");
          return left.ok() && left->Int64(0, 0) == 0;
        },
        absl::Seconds(30)));
  }
  ReadsByTable Counted() {
    Run("select pg_stat_force_next_flush()");
    const auto rows = connection_->Exec(
        "select regexp_replace(relname::text, '_(k[0-9]+_[0-9]+|[0-9])$', '') as name, "
        "sum(seq_scan)::bigint, sum(seq_tup_read)::bigint, "
        "coalesce(sum(idx_tup_fetch), 0)::bigint from pg_stat_user_tables "
        "where schemaname = 'stepwell' group by 1");
    EXPECT_TRUE(rows.ok()) << rows.status();
    ReadsByTable counted;
    for (int row = 0; rows.ok() && row < rows->row_count(); ++row) {
      counted[std::string(rows->Text(row, 0))] = {rows->Int64(row, 1), rows->Int64(row, 2),
                                                  rows->Int64(row, 3)};
    }
    return counted;
  }

  // The same each time, but for the trial's name: writers open and define, commit, are folded and merged.
  void Live(const std::string& name) {
    Turn(name);
    std::mt19937_64 random(17);
    RandomTrial trial = BeginRandom();
    for (int round = 1; round <= 40; ++round) {
      CommitRandom(random, trial);
      if (round % 4 == 0) Fold();
      if (round % 8 != 0) continue;
      for (int i = 0; i < 8; ++i) Merge(1);
    }
  }
  ReadsByTable ReadsOf(const std::string& name) {
    CloseStores();
    const ReadsByTable before = Counted();
    OpenStores();
    Live(name);
    CloseStores();
    ReadsByTable reads = Counted();
    for (auto& [table, each] : reads) {
      const auto found = before.find(table);
      if (found == before.end()) continue;
      each.scans -= found->second.scans;
      each.scan_rows -= found->second.scan_rows;
      each.index_rows -= found->second.index_rows;
    }
    return reads;
  }
};

TEST_F(WriterPlansTest, CommitsFoldsAndMergesReadTheirOwnTrialsByAnIndex) {
  Live("run");
  Run(
      absl::StrCat("insert into stepwell.gaps (trial_id, writer_no, cause, metric_group, "
                   "sample_count, first_time_us, last_time_us, first_sequence, last_sequence, "
                   "reason) select ",
                   Value(trial_id_),
                   ", 1, 2, 'training', 1, 0, 0, 0, 0, '' from "
                   "generate_series(1, 20)"));
  const ReadsByTable of_few = ReadsOf("among few");
  Turn("run");
  CopyTrial(kFirstCopy, kFirstCopy + kManyTrials, MergedTables());
  const ReadsByTable of_many = ReadsOf("among many");
  for (const char* table :
       {"trials", "attempts", "writers", "writer_origins", "series", "gaps", "usage_lines",
        "metrics", "ticks", "rollups", "rollup_ticks", "recent_rollups"}) {
    SCOPED_TRACE(table);
    ASSERT_TRUE(of_many.contains(table));
    EXPECT_EQ(of_many.at(table).scans, 0);
  }
  EXPECT_LE(of_many.at("recent_rollup_ticks").scans, 4) << "one of each segment";
  EXPECT_GT(of_many.at("writers").index_rows, 0);
  EXPECT_GT(of_many.at("recent").index_rows, 0);
  for (const auto& [table, many] : of_many) {
    SCOPED_TRACE(table);
    if (table == "journal" || table == "recent_rollup_ticks") continue;
    const Reads& few = of_few.at(table);
    const auto rows = static_cast<double>(many.scan_rows + many.index_rows);
    const auto rows_of_few = static_cast<double>(few.scan_rows + few.index_rows);
    EXPECT_LE(rows, 1.05 * rows_of_few + 20);
  }
}

// A thousand losses of a chunk may each say something else, and none of it be there: the writer's rows were read for each.
TEST_F(WriterPlansTest, GapsOfOneCauseReadItsRowsOnceHoweverManyTheyAre) {
  Turn("run");
  Feed feed = OpenWriter("job");
  const auto gaps = [](int count, const char* word) {
    std::vector<Gap> made(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      Gap& gap = made[static_cast<std::size_t>(i)];
      gap.cause = GapCause::kRingFull;
      gap.sample_count = 1;
      gap.reason = absl::StrCat(word, i);
    }
    return made;
  };
  Commit(feed, {}, kStartUs, gaps(static_cast<int>(kGapRowsMax), "known "));
  CloseStores();
  const Reads before = Counted()["gaps"];
  OpenStores();
  std::vector<Gap> many = gaps(3000, "new ");
  many.push_back(gaps(3, "known ").back());
  Commit(feed, {}, kStartUs, std::move(many));
  CloseStores();
  const Reads after = Counted()["gaps"];
  EXPECT_EQ(after.scans, before.scans);
  EXPECT_LE(after.index_rows - before.index_rows, 3 * kGapRowsMax);
  EXPECT_GE(after.index_rows - before.index_rows, kGapRowsMax) << "it was counted";
  const auto sums = connection_->Exec(
      "select count(*), sum(sample_count)::bigint, "
      "sum(sample_count) filter (where reason = 'known 2')::bigint from stepwell.gaps");
  ASSERT_TRUE(sums.ok()) << sums.status();
  EXPECT_EQ(sums->Int64(0, 0), kGapRowsMax);
  EXPECT_EQ(sums->Int64(0, 1), kGapRowsMax + 3001);
  EXPECT_EQ(sums->Int64(0, 2), 2) << "what goes on is found among them";
  OpenStores();
}

}  // namespace
}  // namespace stepwell
