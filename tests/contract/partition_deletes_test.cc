// Rows of partitions are inserted once and go with their leaf: a life of folds, merges and sweeps by age
// neither deletes nor rewrites one, by PostgreSQL's own count. What does delete is told by name: bounds of
// bytes and of samples, and the deletion of a trial.
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/contract/caps_store_test.h"
#include "tests/support/child_process.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::Eventually;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;

constexpr std::int64_t kDay = 86'400;

class PartitionDeletes : public CapsStoreTest {
 protected:
  // What comes in bulk goes into leaves at once.
  void FoldNow(const WriterFold& fold) override {
    if (!is_bulk_) return CapsStoreTest::FoldNow(fold);
    const auto folded = folds_->FoldBulk(kEpoch, {fold}, 0);
    ASSERT_TRUE(folded.ok()) << folded.status();
    ASSERT_TRUE(folded->has_value());
    ++bulk_count_;
  }
  // A backend tells its counts when it ends, at the latest.
  void EndBackends() {
    const char* others =
        "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
        "and backend_type = 'client backend'";
    Run(absl::StrCat("select pg_terminate_backend(pid) ", others));
    ASSERT_TRUE(Eventually([&] { return Number(absl::StrCat("select count(*) ", others)) == 0; },
                           absl::Seconds(30)));
  }
  // Of all leaves; `of`: an expression of pg_stat_user_tables.
  std::int64_t Count(const std::string& of) {
    return Number(
        absl::StrCat("select coalesce(sum(", of,
                     "), 0)::bigint from pg_stat_user_tables where schemaname = "
                     "'stepwell' and relname ~ '^(metrics|ticks|rollups|rollup_ticks)_k'"));
  }

  bool is_bulk_ = false;
  int bulk_count_ = 0;
};

TEST_F(PartitionDeletes, ALifeOfFoldsMergesAndSweepsDeletesNothing) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 4);
  SetCaps({}, {.raw_age_seconds = kDay, .rollup_age_seconds = 30 * kDay});
  SetCaps(Of(writer, "timing"), {.raw_age_seconds = 2 * kDay, .rollup_age_seconds = 30 * kDay});
  std::int64_t leaves_emptied = 0;
  for (std::int64_t day = 0; day < 4; ++day) {
    const std::int64_t now_us = kNowUs + day * kDayUs;
    // So many merges that their rollups are joined, some of samples of long ago.
    for (std::int64_t merge = 0; merge < 20; ++merge) {
      const std::int64_t late_us = merge % 5 == 0 ? 90 * kDayUs : 0;
      std::vector<TickTable> tables = {Table(4, 50, now_us + merge * 50'000'000 - late_us)};
      is_bulk_ = merge % 4 == 1;
      Fill(writer, tables, now_us);
      MergeNow(now_us);
    }
    leaves_emptied += SweepAll(now_us).leaves_emptied;
  }
  EXPECT_GT(leaves_emptied, 0);
  EXPECT_EQ(bulk_count_, 4 * 5);
  ExpectNothingVanished();
  const std::int64_t leaves = Number(
      "select count(*) from pg_class where relname ~ '^(metrics|rollups)_k' and relkind = 'r'");
  ASSERT_NO_FATAL_FAILURE(EndBackends());
  EXPECT_GT(leaves, 0);
  EXPECT_GE(Count("case when relname like 'metrics%' then n_tup_ins end"), 4 * 4 * 20);
  EXPECT_GT(Count("case when relname like 'rollups%' then n_tup_ins end"), 0);
  EXPECT_EQ(Count("n_tup_del"), 0);
  EXPECT_EQ(Count("n_tup_upd"), 0);
}

// Each new leaf would wait for a look through all that it holds, and no read could leave it out.
TEST_F(PartitionDeletes, ThereIsNoDefaultPartition) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  SetCaps(Of(writer, "timing"), {.raw_age_seconds = 2 * kDay});  // two keep classes
  // Of the day of arrival, of long ago and of a day to come.
  Fill(writer,
       {Table(2, 50), Table(2, 50, kNowUs - 20'000 * kDayUs), Table(2, 50, kNowUs + 3 * kDayUs)});
  MergeNow();
  EXPECT_EQ(Text("select coalesce(string_agg(partdefid::regclass::text, ' '), '') "
                 "from pg_partitioned_table where partdefid <> 0"),
            "");
  EXPECT_EQ(Number("select count(*) from pg_partitioned_table"), 6);
  EXPECT_GT(Number("select count(*) from pg_inherits i join pg_partitioned_table p "
                   "on p.partrelid = i.inhparent"),
            6);
}

TEST_F(PartitionDeletes, BoundsAndDeletedTrialsDoByName) {
  const OpenedWriter bounded = OpenWriter("bounded");
  const OpenedWriter deleted = OpenWriter("deleted");
  for (const OpenedWriter* writer : {&bounded, &deleted}) {
    AddSeries(writer->trial_id, 2);
    FillAndMerge(*writer, 2, 100);
    FillAndMerge(*writer, 2, 100, kNowUs + kDayUs);
  }
  SetCaps(Of(bounded), {.series_samples = 100});
  SweepAll(kNowUs + kDayUs);
  ASSERT_TRUE(
      caps_.Delete(testing::kEpoch, {.trial_id = Value(deleted.trial_id)}, kAllProjects).ok());
  SweepAll(kNowUs + kDayUs);
  ASSERT_NO_FATAL_FAILURE(EndBackends());
  EXPECT_EQ(Count("case when relname like 'metrics%' then n_tup_del end"), 2 + 4);
  EXPECT_EQ(Count("n_tup_upd"), 0);
}

}  // namespace
}  // namespace stepwell
