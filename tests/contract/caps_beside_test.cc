// Sweeps beside ingest, with somebody's long transaction open: nobody waits for it but the leaf.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::Connect;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;

constexpr std::int64_t kDay = 86'400;

class CapsBeside : public CapsStoreTest {
 protected:
  // Runs `call`, and remembers how long the longest took.
  template <typename Call>
  void Timed(Call call) {
    const absl::Time begin = absl::Now();
    call();
    longest_ = std::max(longest_, absl::Now() - begin);
  }

  absl::Duration longest_ = absl::ZeroDuration();
};

TEST_F(CapsBeside, AnOpenTransactionAndABackupHoldUpNobody) {
  SetCaps({}, {.raw_age_seconds = kDay, .series_samples = 300});
  const OpenedWriter old = OpenWriter("old"), live = OpenWriter("live"), gone = OpenWriter("gone");
  for (const OpenedWriter& writer : {old, live, gone}) AddSeries(writer.trial_id, 8);
  for (int day = 0; day < 3; ++day) FillAndMerge(old, 8, 300, kNowUs + day * kDayUs);
  FillAndMerge(gone, 8, 300);
  ASSERT_TRUE(folds_->AttachLeaves(kNowUs + 5 * kDayUs).ok());
  // Grafana, say: a transaction that has read one series, and a backup that holds all tables.
  const auto psql = Connect(url_), backup = Connect(url_);
  ASSERT_TRUE(psql->ExecScript("begin; select count(*) from stepwell.generic_metrics").ok());
  ASSERT_TRUE(backup
                  ->ExecScript("begin isolation level repeatable read, read only; "
                               "lock table stepwell.metrics, stepwell.usage in access share mode; "
                               "select count(*) from stepwell.usage")
                  .ok());
  std::atomic<bool> stop = false;
  std::atomic<int> commits = 0;
  std::thread ingest([&] {
    for (std::uint64_t sequence = 1; !stop; ++sequence) {
      const absl::Time begin = absl::Now();
      const auto results = ingest_->Commit(Group({Advance(live, sequence)}));
      ASSERT_TRUE(results.ok()) << results.status();
      EXPECT_LT(absl::Now() - begin, absl::Seconds(2)) << "commit " << sequence;
      ++commits;
    }
  });
  ASSERT_TRUE(caps_.Delete(kEpoch, {.external_id = "gone"}, kAllProjects).ok());
  sent_.erase({Value(gone.trial_id), "gpu"});
  sent_.erase({Value(gone.trial_id), "timing"});
  const std::int64_t now_us = kNowUs + 4 * kDayUs;
  std::int64_t leaves_left = 0;
  std::uint64_t folded = 0;
  for (int round = 0; round < 10; ++round) {
    const auto swept = caps_.Sweep(kEpoch, {.now_us = now_us}, kAllProjects);
    ASSERT_TRUE(swept.ok()) << swept.status();
    leaves_left = swept->leaves_left;
    const std::uint64_t committed = Committed(live);
    const std::vector<TickTable> tables = {NoisyTable(8, 100, now_us + round * 100'000'000)};
    Timed([&] {
      const auto result = folds_->Fold(kEpoch, {FoldOf(live, folded, committed, tables, now_us)});
      EXPECT_TRUE(result.ok()) << result.status();
    });
    folded = committed;
    sent_[{Value(live.trial_id), "gpu"}] += 400;
    sent_[{Value(live.trial_id), "timing"}] += 400;
    Timed([&] { MergeNow(now_us); });
  }
  stop = true;
  ingest.join();
  EXPECT_GT(commits, 10);
  EXPECT_GT(leaves_left, 0) << "they wait for the two";
  EXPECT_LT(longest_, absl::Seconds(3));
  ASSERT_TRUE(psql->ExecScript("commit").ok());
  ASSERT_TRUE(backup->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(now_us).leaves_left, 0);
  ExpectNothingVanished();
}

// What the project promises of the sweep of a leaf: its lock below 50 ms, below 1 MB of WAL. The lock is
// measured by somebody who wants it, on a machine that does other things, too.
TEST_F(CapsBeside, TheLockOfALeafIsShortAndItsWalSmall) {
  SetCaps({}, {.raw_age_seconds = kDay});
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 200);
  for (int hour = 0; hour < 3; ++hour) {
    FillAndMerge(writer, 200, 600, kNowUs + hour * std::int64_t{3'600'000'000});
  }
  const std::string wal = "select (pg_current_wal_insert_lsn() - '0/0')::bigint";
  const std::int64_t leaf_bytes =
      Number("select pg_total_relation_size('stepwell.metrics_k1_20241004')");
  std::atomic<bool> stop = false;
  absl::Duration longest = absl::ZeroDuration();
  std::thread reader([&] {
    const auto sql = Connect(url_);
    while (!stop) {
      const absl::Time begin = absl::Now();
      EXPECT_TRUE(
          sql->Exec("select count(*) from stepwell.metrics_k1_20241004 where trial_id = 0").ok());
      longest = std::max(longest, absl::Now() - begin);
    }
  });
  MoveRollups(kNowUs + 3 * kDayUs);
  const std::int64_t before = Number(wal);
  SweepResult swept;
  for (int calls = 0; swept.leaves_emptied == 0 && calls < 1000; ++calls) {
    swept = SweepWithoutMerges(kNowUs + 3 * kDayUs);
  }
  const std::int64_t wal_bytes = Number(wal) - before;
  stop = true;
  reader.join();
  EXPECT_EQ(swept.leaves_emptied, 1);
  EXPECT_LT(wal_bytes, 1'000'000) << "of a leaf of " << leaf_bytes << " bytes";
  // A lock of 50 ms is bench/beside's to measure; one that is held for the whole sweep is seen here.
  EXPECT_LT(longest, absl::Seconds(10));
  RecordProperty("wal_bytes", std::to_string(wal_bytes));
  RecordProperty("leaf_bytes", std::to_string(leaf_bytes));
  RecordProperty("longest_wait_us", std::to_string(absl::ToInt64Microseconds(longest)));
  ExpectNothingVanished();
}

}  // namespace
}  // namespace stepwell
