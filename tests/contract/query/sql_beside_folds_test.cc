// What SQL shows while samples are folded and merged, straight into leaves, too, and rings are truncated: each sample
// that was folded once, in each statement, by `samples` and by `generic_metrics`. A statement that saw a row in two
// places, or in none, would be a number that people put into reports.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "absl/strings/str_cat.h"
#include "base/worker.h"
#include "storage/pg_connection.h"
#include "tests/contract/query/query_reads_fixture.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/sql_of.h"

namespace stepwell {
namespace {

using testing::TestSeed;

constexpr int kTicksPerChunk = 5;
constexpr int kRoundsMin = 150;
constexpr int kRoundsMax = 5000;
constexpr int kReadsMin = 40;

class SqlBesideFoldsTest : public QueryReadsTest {
 protected:
  // Value i is sample i, so that count, distinct values and greatest tell what is missing or twice.
  struct Seen {
    std::int64_t count = 0, distinct = 0, end = 0;
  };
  void CommitNext(Feed& feed, std::int32_t series_no) {
    TickTable table;
    table.tick_group = 1;
    TickColumn column;
    column.series_no = SeriesNo{series_no};
    for (int i = 0; i < kTicksPerChunk; ++i) {
      table.times_us.push_back(kStartUs + next_ * 1000);
      table.batches.push_back(static_cast<std::int32_t>(next_));
      column.values.push_back(static_cast<double>(next_++));
    }
    table.columns.push_back(std::move(column));
    Commit(feed, {std::move(table)}, kStartUs);
  }
  // Runs until `stop`; each answer is whole, and none has less than the one before.
  void ReadOn(const std::string& source, const std::atomic<bool>& stop) {
    const auto connection = testing::Connect(url_);
    std::int64_t seen_before = 0;
    while (!stop) {
      const auto rows = connection->Exec(
          SqlOf(absl::StrCat(
              "select count(*), count(distinct value), coalesce(max(value), -1)::bigint + 1 from ",
              source)),
          {absl::StrCat(Value(trial_id_))});
      ASSERT_TRUE(rows.ok()) << rows.status();
      const Seen seen{rows->Int64(0, 0), rows->Int64(0, 1), rows->Int64(0, 2)};
      ASSERT_EQ(seen.count, seen.distinct) << "twice, by " << source;
      ASSERT_EQ(seen.count, seen.end) << "missing, by " << source;
      ASSERT_GE(seen.count, seen_before) << "what was read once is gone, by " << source;
      seen_before = seen.count;
      ++read_count_;
    }
  }

  // Another one since a segment was truncated.
  std::string RingFiles() {
    const auto rows = testing::Connect(url_)->Exec(
        "select string_agg(pg_relation_filenode(oid)::text, ' ' order by oid) from pg_class "
        "where relname ~ '^recent_[0-9]$'",
        {});
    EXPECT_TRUE(rows.ok()) << rows.status();
    return std::string(rows->Text(0, 0));
  }

  std::int64_t next_ = 0;
  std::atomic<int> read_count_ = 0;
};

TEST_F(SqlBesideFoldsTest, EachFoldedSampleIsThereOnceInEachStatement) {
  // So small that the ring comes round all the time.
  auto folds = PgFoldStore::Open(
      {.url = url_, .recent = {.age_max_us = 1'000'000, .bytes_max = 20'000}, .bulk_ticks = 1},
      journal_);
  ASSERT_TRUE(folds.ok()) << folds.status();
  folds_ = *std::move(folds);
  Feed feed = OpenWriter("job");
  const std::int32_t series_no = AddSeries("g", "counting");
  std::atomic<bool> stop = false;
  Worker samples("samples", [&] { ReadOn("stepwell.samples($1::bigint)", stop); });
  Worker arrays("arrays", [&] {
    ReadOn("stepwell.generic_metrics, unnest(values) as u (value) where trial_id = $1::bigint",
           stop);
  });
  const std::string files = RingFiles();
  std::mt19937_64 random(TestSeed());
  for (int round = 0; (round < kRoundsMin || read_count_ < kReadsMin) && round < kRoundsMax;
       ++round) {
    CommitNext(feed, series_no);
    if (random() % 3 == 0) Fold();
    if (random() % 9 == 0) FoldBulk();
    if (random() % 5 == 0) Merge(1);
    if (random() % 2 == 0) {
      const absl::Status recycled = folds_->RecycleRecent(kEpoch);
      ASSERT_TRUE(recycled.ok()) << recycled;
    }
  }
  stop = true;
  samples.Join();
  arrays.Join();
  EXPECT_GE(read_count_, kReadsMin);
  EXPECT_GT(bulk_fold_count_, 0);
  EXPECT_NE(RingFiles(), files) << "the ring did not come round";
}

}  // namespace
}  // namespace stepwell
