// Burials beside a ring of recent that turns: rows of a deleted trial are carried nowhere, whoever comes first.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::BuriedMismatchSql;
using testing::CapsStoreTest;
using testing::Connect;
using testing::kEpoch;
using testing::kNowUs;

class CapsBurial : public CapsStoreTest {
 protected:
  // Segment 0 holds rows of "t" and of "other" that are not ripe, and is what the ring comes to next.
  void TurnRing() {
    Reopen({.age_max_us = 0});
    for (const OpenedWriter& writer : {writer_, other_}) {
      AddSeries(writer.trial_id, 4);
      Fill(writer, {Table(4, 10)});
    }
    for (int segment = 1; segment < RecentRing::kSegmentCount; ++segment) {
      ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
      Fill(other_, {Table(4, 10)});
    }
    ASSERT_EQ(RowsOf(writer_, "recent_0"), 4);
    ASSERT_EQ(RowsOf(other_, "recent_0"), 4);
  }
  std::int64_t RowsOf(const OpenedWriter& writer, const std::string& table) {
    return Number(absl::StrCat("select count(*) from stepwell.", table,
                               " where trial_id = ", Value(writer.trial_id)));
  }
  // Waits until so many of this database wait for locks.
  void AwaitLockWaits(int count) {
    for (const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
         !deadline.HasPassed();) {
      if (Number("select count(*) from pg_stat_activity where wait_event_type = 'Lock' "
                 "and datname = current_database()") >= count) {
        return;
      }
    }
    ADD_FAILURE() << "fewer than " << count << " wait for locks";
  }
  void ExpectCarriedOrGone() {
    EXPECT_EQ(Text(BuriedMismatchSql()), "");
    EXPECT_EQ(RowsOf(writer_, "recent"), 0);
    EXPECT_EQ(RowsOf(writer_, "recent_ticks"), 0);
    EXPECT_EQ(RowsOf(other_, "recent_0"), 0) << "carried on";
    EXPECT_EQ(RowsOf(other_, "recent"), 4 * RecentRing::kSegmentCount);
    EXPECT_EQ(RowsOf(other_, "recent_ticks"), RecentRing::kSegmentCount);
  }

  const OpenedWriter writer_ = OpenWriter("t"), other_ = OpenWriter("other");
};

TEST_F(CapsBurial, ADeletionBehindRowsThatAreBeingCarriedFindsThemWhereTheyCome) {
  TurnRing();
  // Holds who has carried everything and not committed.
  Run("create function stepwell.hold() returns trigger language plpgsql as "
      "$$ begin perform pg_advisory_xact_lock(7); return null; end $$");
  Run("create trigger hold after insert on stepwell.recent_ticks_3 execute function "
      "stepwell.hold()");
  Run("select pg_advisory_lock(7)");
  absl::Status recycled, deleted;
  std::thread ring([&] { recycled = folds_->RecycleRecent(kEpoch); });
  AwaitLockWaits(1);
  std::thread deletion([&] {
    const auto result = caps_.Delete(kEpoch, {.external_id = "t"}, kAllProjects);
    deleted = result.status();
    EXPECT_TRUE(!result.ok() || result->done);
  });
  AwaitLockWaits(2);
  Run("select pg_advisory_unlock(7)");
  ring.join();
  deletion.join();
  EXPECT_TRUE(recycled.ok()) << recycled;
  EXPECT_TRUE(deleted.ok()) << deleted;
  ExpectCarriedOrGone();
  EXPECT_EQ(Number("select attempt_count from stepwell.trials where external_id = 't'"), 0);
}

TEST_F(CapsBurial, WhoCarriesBehindADeletionLeavesItsRows) {
  TurnRing();
  const auto deletion = Connect(url_);
  ASSERT_TRUE(deletion
                  ->ExecScript("begin; select from stepwell.trials where external_id = 't' "
                               "for update; update stepwell.trials set deleted_time = now(), "
                               "state = 2 where external_id = 't'")
                  .ok());
  absl::Status recycled;
  std::thread ring([&] { recycled = folds_->RecycleRecent(kEpoch); });
  AwaitLockWaits(1);
  ASSERT_TRUE(deletion->ExecScript("commit").ok());
  ring.join();
  EXPECT_TRUE(recycled.ok()) << recycled;
  EXPECT_EQ(RowsOf(writer_, "recent_3"), 0);
  EXPECT_EQ(RowsOf(writer_, "recent_ticks_3"), 0);
  SweepWithoutMerges();
  ExpectCarriedOrGone();
}

// A burial that has taken rows waits for nobody who carries, nor the other way round.
TEST_F(CapsBurial, RowsThatABurialIsTakingHoldUpNoRing) {
  TurnRing();
  Run("update stepwell.trials set deleted_time = now(), state = 2 where external_id = 't'");
  const auto burial = Connect(url_);
  ASSERT_TRUE(burial
                  ->ExecScript(SqlOf(absl::StrCat(
                      "begin; delete from stepwell.recent where series_no > 2 and trial_id = ",
                      Value(writer_.trial_id))))
                  .ok());
  const absl::Status recycled = folds_->RecycleRecent(kEpoch);
  EXPECT_TRUE(recycled.ok()) << recycled;
  EXPECT_EQ(RowsOf(writer_, "recent"), 2) << "those of the burial";
  EXPECT_EQ(RowsOf(other_, "recent_0"), 0);
  ASSERT_TRUE(burial->ExecScript("commit").ok());
  SweepWithoutMerges();
  ExpectCarriedOrGone();
}

// As burials of before left them: nobody comes back for them.
TEST_F(CapsBurial, WhatABurialLeftBehindGoesAsTheRingTurns) {
  TurnRing();
  Run("update stepwell.trials set deleted_time = now(), state = 2, attempt_count = 0 "
      "where external_id = 't'");
  ASSERT_TRUE(folds_->RecycleRecent(kEpoch).ok());
  EXPECT_EQ(RowsOf(writer_, "recent"), 0);
  EXPECT_EQ(RowsOf(writer_, "recent_ticks"), 0);
  EXPECT_EQ(RowsOf(other_, "recent_3"), 8) << "its own, and those that came round";
}

TEST_F(CapsBurial, RowsOfOneWriterGoInPieces) {
  CommitTo(writer_, 1, 1);
  Run(absl::StrCat(
      "insert into stepwell.gaps (trial_id, writer_no, cause, metric_group, sample_count, "
      "first_time_us, last_time_us, first_sequence, last_sequence, reason) select ",
      Value(writer_.trial_id), ", ", Value(writer_.writer_no),
      ", 9, '', 1, 1, 1, n, n, 'NO' from generate_series(1, 4500) n"));
  Run("create function stepwell.count_gone() returns trigger language plpgsql as "
      "$$ begin if (select count(*) from gone) > 1000 then raise exception 'too many at once'; "
      "end if; return null; end $$");
  Run("create trigger count_gone after delete on stepwell.gaps referencing old table as gone "
      "execute function stepwell.count_gone()");
  const auto deleted = caps_.Delete(kEpoch, {.external_id = "t"}, kAllProjects);
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(deleted->done);
  EXPECT_EQ(RowsOf(writer_, "gaps"), 0);
}

}  // namespace
}  // namespace stepwell
