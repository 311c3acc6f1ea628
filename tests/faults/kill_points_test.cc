// A master under load is killed by SIGKILL at each place where work on what is stored may be cut in two:
// Opens and definitions, the making of leaves, commits, folds, merges with their rollups, the recycling of
// all rings, sweeps of leaves and of rows, deletions of trials. It is started again each time on a database
// that has aged meanwhile, so that there is something to merge, recycle or sweep at once.
//
// Trials that are deleted meanwhile are trials of their own, beside the one that is checked sample by sample.
//
// What must hold: at each death the ledger says what the tables hold, row by row, sample by sample and
// byte by byte; in the end each sample that was acked is there once, or a gap of cause CAP counts it, and
// these gaps count nothing else; a trial whose deletion was cut is whole as long as it is not deleted, and once it
// is nothing of it stays but its tombstone; rollups say what a recount of the samples says; no row lacks its ticks.
// How it would fail: work that is committed in two halves. A merge that deletes before it commits loses
// samples at merge_before_commit; a fold that moves its mark apart from its rows doubles them at
// fold_after_commit; a deletion that takes its ledger first, or its attempts, leaves rows that nobody looks for at
// sweep_after_commit; a sweep that notes its gaps later has samples missing at sweep_after_commit; rows of
// rollups in a transaction of their own differ from the recount at rollup_before_copy, and narrow ones that
// are taken in one and written in another at rollup_rows_taken; what goes straight into leaves in a transaction
// apart from its writer's mark is doubled, or lost, at bulk_after_commit.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tests/faults/database_text.h"
#include "tests/faults/doomed_trials.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"
#include "tests/support/bookkeeping_sql.h"
#include "tests/support/postgres.h"

namespace stepwell::faults {
namespace {

using testing::kOutlivingRollupsMismatchSql;
using testing::LedgerMismatchSql;
using testing::RollupMismatchSql;
using testing::Rollups;
using testing::TicksMismatchSql;

constexpr int kRawWriterCount = 3;
constexpr int kRankOfMany = 30;
// A point is reached within a second or two of a start; where nothing is ripe it is not, and later it is.
constexpr absl::Duration kPatience = absl::Milliseconds(2500);

struct Point {
  const char* name;
  // So many passes, at most, are let through before the one that kills.
  int skip_max = 0;
  int kills = 3;
};

struct GroupCaps {
  std::string group;
  v1::Caps caps;
};

struct Work {
  const char* name;
  std::vector<Point> points;
  // How much older the database is at each start.
  Age age;
  // At each second start instead.
  std::optional<Age> age_of_others = std::nullopt;
  // Reached now and then: armed beside the others until it was.
  Point beside = {nullptr, 0, 0};
  std::vector<GroupCaps> caps = {};
  Rollups rollups = Rollups::kExact;
  // Of one more writer; 0 = there is none.
  int series_count = 0;
  // Before each start one more writer, with a series that nobody has defined.
  bool newcomers = false;
  // In each life a trial that was made for it is deleted.
  bool deletes = false;
  // Of one more writer: 2000 samples a second.
  bool bulk = false;
};

void PrintTo(const Work& work, std::ostream* out) { *out << work.name; }

GroupCaps Ages() {
  v1::Caps caps;
  caps.set_raw_age_seconds(1);
  caps.set_rollup_age_seconds(2 * 86'400);
  return {"", caps};
}

// Samples and rollups go together, and their lines of the ledger with them.
GroupCaps AgesAlike() {
  v1::Caps caps;
  caps.set_raw_age_seconds(1);
  caps.set_rollup_age_seconds(1);
  return {"", caps};
}

GroupCaps BytesOf(const char* group) {
  v1::Caps caps;
  caps.set_trial_bytes(40'000);
  return {group, caps};
}

GroupCaps SamplesOf(const char* group) {
  v1::Caps caps;
  caps.set_series_samples(50);
  return {group, caps};
}

const std::vector<Work>& Works() {
  static const auto* works = new std::vector<Work>{
      {.name = "Commit",
       .points = {{"before_commit", 20},
                  {"commit_before_begin", 20},
                  {"commit_after_guard", 20},
                  {"commit_mid_copy", 20},
                  {"commit_before_commit", 20},
                  {"commit_after_commit", 20},
                  {"before_replay"}},
       .age = {.seconds = 60}},
      {.name = "Open",
       .points = {{"open_before_commit", 4},
                  {"open_after_commit", 4},
                  {"define_before_commit"},
                  {"define_after_commit"}},
       .age = {.seconds = 60},
       .newcomers = true},
      // A day goes by before each start: there are leaves to make, four tables of each class.
      {.name = "AttachLeaves",
       .points = {{"attach_before_commit", 3, 4}, {"attach_after_commit", 3, 4}},
       .age = {.days = 1}},
      {.name = "Fold",
       .points = {{"before_fold", 10},
                  {"fold_before_commit", 10},
                  {"fold_after_commit", 10},
                  {"after_fold_before_heads", 10}},
       .age = {.seconds = 60}},
      // So many samples a second that what came while the master was down, and more, goes straight into leaves.
      {.name = "FoldBulk",
       .points = {{"bulk_before_commit", 0, 4},
                  {"bulk_after_commit", 0, 4},
                  {"rollup_before_copy", 0, 2}},
       .age = {.seconds = 60},
       .bulk = true},
      {.name = "Merge",
       .points = {{"rollup_before_copy", 3},
                  {"merge_before_delete", 3},
                  {"merge_before_commit"},
                  {"merge_after_commit"}},
       .age = {.seconds = 3'700}},
      // One stretch takes two transactions or more.
      {.name = "MergeOfManySeries",
       .points = {{"merge_before_delete", 3, 2},
                  {"merge_before_commit", 1, 2},
                  {"merge_after_commit", 0, 2}},
       .age = {.seconds = 3'700},
       .series_count = 250},
      // Each life leaves one narrow row of rollups per writer, more or less; when there are fifteen, merges
      // begin to join them. The other points take the lives until then.
      {.name = "JoinRollups",
       .points = {{"rollup_rows_taken", 0, 3},
                  {"rollup_before_copy", 3, 5},
                  {"merge_before_commit", 1, 5},
                  {"merge_after_commit", 0, 5}},
       .age = {.seconds = 3'700}},
      // At each second start a day goes by: rollups that waited to be joined, as the lives between make them,
      // go into the leaves of their day, and what held them is truncated.
      {.name = "MoveRollups",
       .points = {{"move_rollups_before_commit"},
                  {"move_rollups_after_commit"},
                  {"recycle_rollups_before_commit"},
                  {"recycle_rollups_after_commit"}},
       .age = {.seconds = 3'700},
       .age_of_others = Age{.days = 1}},
      // Half an hour: the ring of recent goes on at each start, what lies in it is merged at the next.
      {.name = "Recycle",
       .points = {{"recycle_recent_before_commit"},
                  {"recycle_recent_after_commit"},
                  {"carry_progress_before_commit"},
                  {"carry_progress_after_commit"},
                  {"recycle_journal_before_commit"},
                  {"recycle_journal_after_commit"}},
       .age = {.seconds = 1'860},
       .beside = {"move_recent_before_commit", 0, 1}},
      {.name = "SweepLeaves",
       .points = {{"sweep_before_commit", 1},
                  {"sweep_after_commit", 1},
                  {"sweep_before_truncate"},
                  {"sweep_after_truncate"},
                  {"sweep_before_drop", 3, 2}},
       .age = {.days = 1},
       .caps = {Ages()}},
      {.name = "SweepWholeLeaves",
       .points = {{"sweep_before_commit", 1},
                  {"sweep_after_commit", 1},
                  {"sweep_before_truncate"},
                  {"sweep_after_truncate"},
                  {"sweep_before_drop", 3, 2}},
       .age = {.days = 1},
       .caps = {AgesAlike()}},
      {.name = "SweepRows",
       .points = {{"sweep_before_commit", 2, 5}, {"sweep_after_commit", 2, 5}},
       .age = {.seconds = 3'700},
       .caps = {BytesOf("faults"), SamplesOf("timing")},
       .rollups = Rollups::kAtLeast},
      // Nine transactions or more. What is deleted lies in recent and in a leaf, or, after a day, in leaves alone.
      {.name = "DeleteTrial",
       .points = {{"delete_before_commit", 0, 2},
                  {"delete_after_commit", 0, 2},
                  {"sweep_before_commit", 8, 9},
                  {"sweep_after_commit", 8, 9}},
       .age = {.seconds = 60},
       .age_of_others = Age{.days = 1},
       .deletes = true}};
  return *works;
}

std::string DescribeWork(const ::testing::TestParamInfo<Work>& info) { return info.param.name; }

class KillPointsTest : public ::testing::TestWithParam<Work> {
 protected:
  const Work& work() const { return GetParam(); }
  int Kills(const Point& point) const {
    return master_.CountInLog(absl::StrCat("failpoint ", point.name, " exit"));
  }
  bool IsDone(const Point& point) const { return point.kills == 0 || Kills(point) >= point.kills; }

  // The one that is furthest from its number; null when all are there.
  const Point* NextPoint() const {
    const Point* next = nullptr;
    for (const Point& point : work().points) {
      if (IsDone(point)) continue;
      if (next == nullptr || Kills(point) < Kills(*next)) next = &point;
    }
    return next == nullptr && !IsDone(work().beside) ? &work().beside : next;
  }

  // Of a deletion, whose transactions are always the same: each life dies in another part of it.
  int PassesBefore(const Point& point) {
    if (!work().deletes) return scene_.Random(0, point.skip_max);
    const int part = Kills(point), passes = point.skip_max + 1;
    const int first = part * passes / point.kills;
    return scene_.Random(first, std::max(first, (part + 1) * passes / point.kills - 1));
  }

  // From a start to a death at `point`, or to one from outside.
  void Live(const Point& point) {
    std::string armed = absl::StrCat(point.name, "=exit@", PassesBefore(point));
    const bool beside = &point != &work().beside && !IsDone(work().beside);
    if (beside) {
      absl::StrAppend(&armed, ";", work().beside.name, "=exit");
    }
    master_.StartAndWait({armed});
    if (work().deletes) doomed_.Delete(kPatience);
    const bool died = Eventually([&] { return !master_.running(); }, kPatience);
    if (!died) master_.Kill();
    scene_.Say(absl::StrCat("armed ", armed, died ? ": died" : ": not reached, killed"));
    ASSERT_EQ(master_.Ending(), "killed by signal 9") << master_.LogTail();
  }

  // What the backends of the dead master had begun is over.
  void AwaitBackends() {
    ASSERT_TRUE(Eventually(
        [&] {
          return DatabaseText(url_,
                              "select count(*) from pg_stat_activity where datname = "
                              "current_database() and pid <> pg_backend_pid() and "
                              "backend_type = 'client backend'") == "0";
        },
        absl::Seconds(30)));
  }

  void ExpectBookkeepingIsRight() {
    EXPECT_EQ(DatabaseText(url_, LedgerMismatchSql(/*between_merges=*/true)), "")
        << "held/ledger\n"
        << master_.LogTail();
    EXPECT_EQ(DatabaseText(url_, RollupMismatchSql(work().rollups)), "") << "recount/rollups";
    EXPECT_EQ(DatabaseText(url_, kOutlivingRollupsMismatchSql), "") << "rollups/ledger";
  }

  void ExpectTicksFit() {
    EXPECT_EQ(DatabaseText(url_, TicksMismatchSql("metrics", "ticks", "")), "");
    EXPECT_EQ(DatabaseText(url_, TicksMismatchSql("rollups", "rollup_ticks", ", step_seconds")),
              "");
    EXPECT_EQ(DatabaseText(url_, TicksMismatchSql("recent_rollups", "recent_rollup_ticks",
                                                  ", step_seconds")),
              "");
  }

  void StartProducers() {
    scene_.StartAgent(master_.grpc_address());
    scene_.StartTrainer(0, {{"--world-size", "1"}});
    for (int i = 0; i < kRawWriterCount; ++i) {
      scene_.StartRawWriter(10 + i, master_.grpc_address());
    }
    if (work().series_count > 0) {
      scene_.StartRawWriter(
          kRankOfMany, master_.grpc_address(),
          {{"--series", absl::StrCat(work().series_count)}, {"--samples", "1"}, {"--rate", "20"}});
    }
    if (work().bulk) {
      scene_.StartRawWriter(kRankOfMany, master_.grpc_address(),
                            {{"--samples", "200"}, {"--rate", "10"}});
    }
    // Too slow to be merged for a day: its rows stay where the ring comes round.
    scene_.StartRawWriter(20, master_.grpc_address(), {{"--chunks", "2"}});
  }

  // What came before the database was last made older goes once so much came since as a cap keeps.
  void AwaitCaps(MasterClient& client) {
    for (const GroupCaps& each : work().caps) {
      const std::string removed =
          absl::StrCat("select exists (select from stepwell.gaps where metric_group like '",
                       each.group.empty() ? "%" : each.group, "')");
      ASSERT_TRUE(scene_.Await(absl::StrCat("a cap of '", each.group, "' removed something"),
                               absl::Seconds(60),
                               [&] {
                                 return client.Flush().empty() && client.Sweep().empty() &&
                                        DatabaseText(url_, removed) == "t";
                               }))
          << master_.LogTail();
    }
  }

  // Without failpoints: what is left to be done is done, of writers that have closed, too.
  void Finish() {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    ASSERT_NO_FATAL_FAILURE(doomed_.ExpectWholeOrGone());
    MasterClient client(master_.grpc_address());
    ASSERT_NO_FATAL_FAILURE(AwaitCaps(client));
    scene_.StopProducers(absl::Seconds(60));
    EXPECT_TRUE(scene_.Await(
        "all is merged and swept", absl::Seconds(60),
        [&] {
          return client.Flush().empty() &&
                 DatabaseText(url_, "select not exists (select from stepwell.recent_ticks)") ==
                     "t" &&
                 client.Sweep().empty() &&
                 DatabaseText(url_,
                              "select not exists (select from stepwell.swept_leaves where not "
                              "emptied)") == "t";
        }))
        << client.Flush() << client.Sweep() << master_.LogTail();
  }

  // What the last life did to the trial that it deleted is looked at; the next one is made.
  void DoomNext() {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    ASSERT_NO_FATAL_FAILURE(doomed_.ExpectWholeOrGone());
    ASSERT_NO_FATAL_FAILURE(doomed_.Make());
    master_.Kill();
    ASSERT_NO_FATAL_FAILURE(AwaitBackends());
  }

  // More rows of the writer of many series than one transaction of a merge takes (2000).
  void FillUp() {
    ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
    ASSERT_TRUE(Eventually(
        [&] {
          return DatabaseText(url_, absl::StrCat("select count(*) >= 12 from stepwell.recent_ticks "
                                                 "join stepwell.writers w using (trial_id, "
                                                 "writer_no) where w.rank = ",
                                                 kRankOfMany)) == "t";
        },
        absl::Seconds(30)))
        << master_.LogTail();
    master_.Kill();
    ASSERT_NO_FATAL_FAILURE(AwaitBackends());
  }

  // Otherwise nothing was cut between the transactions of one merge: series that are merged together have
  // their ticks in common.
  void ExpectMergesWereCut() {
    EXPECT_EQ(
        DatabaseText(
            url_, absl::StrCat(
                      "select count(*) > 0 from (select m.tick_no from stepwell.metrics m "
                      "join stepwell.writers w using (trial_id, writer_no) where w.rank = ",
                      kRankOfMany, " group by 1 having count(*) < ", work().series_count, ") t")),
        "t");
  }

  void ExpectGapsCount(const Verdict& verdict) {
    std::int64_t told = 0;
    for (const StoredGap& gap : scene_.stored().gaps) {
      EXPECT_EQ(gap.cause, Cause::kCap);
      told += gap.sample_count;
    }
    EXPECT_EQ(verdict.declared_count, static_cast<std::uint64_t>(told));
    for (const GroupCaps& each : work().caps) {
      EXPECT_TRUE(std::any_of(scene_.stored().gaps.begin(), scene_.stored().gaps.end(),
                              [&](const StoredGap& gap) {
                                return each.group.empty() || gap.metric_group == each.group;
                              }))
          << "no cap of " << each.group << " removed anything";
    }
  }

  int newcomer_count_ = 0;
  Scene scene_{absl::StrCat("kill points ", GetParam().name)};
  const std::string url_ = testing::TestPostgres::Get().Durable().FreshDatabase();
  MasterProcess master_{
      {scene_.path(""),
       "master",
       url_,
       {"--master-id", "one", "--fold-interval", "50ms", "--sweep-interval", "100ms"}}};
  DoomedTrials doomed_{scene_, master_, url_};
};

TEST_P(KillPointsTest, NothingIsLostDoubledOrMiscounted) {
  ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail();
  for (const GroupCaps& each : work().caps) {
    ASSERT_EQ(MasterClient(master_.grpc_address()).SetCaps(each.group, each.caps), "");
  }
  StartProducers();
  ASSERT_TRUE(scene_.Await(
      "rows of all", absl::Seconds(30),
      [&] {
        return DatabaseText(
                   url_, "select count(distinct writer_no) > 4 from stepwell.recent_ticks") == "t";
      }))
      << scene_.Logs() << master_.LogTail();
  master_.Kill();
  int lives_left =
      3 * std::accumulate(work().points.begin(), work().points.end(), work().beside.kills,
                          [](int sum, const Point& point) { return sum + point.kills; });
  for (const Point* point = NextPoint(); point != nullptr && !HasFailure(); point = NextPoint()) {
    ASSERT_GT(lives_left--, 0) << point->name << " is not reached";
    ASSERT_NO_FATAL_FAILURE(AwaitBackends());
    if (work().series_count > 0) {
      ASSERT_NO_FATAL_FAILURE(FillUp());
    }
    if (work().newcomers) {
      scene_.StartRawWriter(
          40 + newcomer_count_, master_.grpc_address(),
          {{"--chunks", "3"}, {"--samples", "1"}, {"--series", absl::StrCat(2 + newcomer_count_)}});
      ++newcomer_count_;
    }
    if (work().deletes) {
      ASSERT_NO_FATAL_FAILURE(DoomNext());
    }
    const bool is_other = work().age_of_others && lives_left % 2 == 0;
    ASSERT_EQ(MakeOlder(url_, is_other ? *work().age_of_others : work().age), "");
    ASSERT_NO_FATAL_FAILURE(Live(*point));
    ASSERT_NO_FATAL_FAILURE(AwaitBackends());
    ExpectBookkeepingIsRight();
  }
  ASSERT_NO_FATAL_FAILURE(Finish());
  for (const Point& point : work().points) {
    scene_.Say(absl::StrFormat("%d kills at %s", Kills(point), point.name));
  }
  const Allowance caps = {.causes = {Cause::kCap}};
  const Verdict verdict =
      scene_.ExpectExact(master_, Demand::kRecorded, work().caps.empty() ? Allowance() : caps);
  ExpectGapsCount(verdict);
  EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  ExpectBookkeepingIsRight();
  ExpectTicksFit();
  if (work().series_count > 0) ExpectMergesWereCut();
  if (work().deletes) {
    // What dies at the first point leaves its trial whole.
    EXPECT_GE(doomed_.spared_count(), work().points.front().kills);
    EXPECT_LT(doomed_.spared_count(), doomed_.count());
  }
}

INSTANTIATE_TEST_SUITE_P(, KillPointsTest, ::testing::ValuesIn(Works()), DescribeWork);

}  // namespace
}  // namespace stepwell::faults
