// CapsStoreTest: FoldStoreTest with a caps store beside it, trials that are filled in one go, and an
// independent checker: rows, ledger, gaps and ticks, by SQL of its own. For the tests of caps.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "storage/pg_caps_store.h"
#include "tests/contract/fold_store_test.h"
#include "tests/support/bookkeeping_sql.h"

namespace stepwell::testing {

class CapsStoreTest : public FoldStoreTest {
 protected:
  // Trial and metric group.
  using Groups = std::map<std::pair<std::int64_t, std::string>, std::int64_t>;

  // Takes `tables` in as one chunk each, received at `received_us`, and folds them.
  void Fill(const OpenedWriter& writer, const std::vector<TickTable>& tables,
            std::int64_t received_us = kNowUs) {
    const WriterProgress at = Progress(writer);
    const std::uint64_t next = at.committed_sequence + 1;
    CommitTo(writer, next, next);
    FoldNow(FoldOf(writer, at.folded_sequence, next, tables, received_us));
    for (const TickTable& table : tables) {
      for (const TickColumn& column : table.columns) {
        const std::string group = Value(column.series_no) % 2 == 1 ? "gpu" : "timing";
        sent_[{Value(writer.trial_id), group}] += static_cast<std::int64_t>(column.values.size());
      }
    }
  }
  virtual void FoldNow(const WriterFold& fold) {
    const auto folded = folds_->Fold(kEpoch, {fold});
    ASSERT_TRUE(folded.ok()) << folded.status();
  }
  // Everything that is folded becomes rows of metrics.
  void MergeNow(std::int64_t now_us = kNowUs) {
    MergeAll({.fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = now_us});
  }
  // Values that cannot be packed well, so that samples take more than their rollups.
  static TickTable NoisyTable(int series_count, int tick_count, std::int64_t start_us) {
    TickTable table = Table(series_count, tick_count, start_us);
    std::uint64_t state = static_cast<std::uint64_t>(start_us);
    for (TickColumn& column : table.columns) {
      for (double& value : column.values) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        value = static_cast<double>(state >> 24) / 3.0;
      }
    }
    return table;
  }
  // As AddSeries names them: series 1, 3, ... are of "gpu", 2, 4, ... of "timing".
  void FillAndMerge(const OpenedWriter& writer, int series_count, int tick_count,
                    std::int64_t received_us = kNowUs) {
    const std::vector<TickTable> tables = {NoisyTable(series_count, tick_count, received_us)};
    Fill(writer, tables, received_us);
    MergeNow(received_us);
  }
  void SetCaps(const CapsTarget& target, const Caps& caps) {
    const auto report = caps_.Set(kEpoch, target, kAllProjects, caps, {});
    ASSERT_TRUE(report.ok()) << report.status();
  }
  static CapsTarget Of(const OpenedWriter& writer, const std::string& group = "") {
    return {.trial = TrialSelector{.trial_id = Value(writer.trial_id)}, .metric_group = group};
  }
  // Rollups of days that are over by then go into their leaves, as beside merges; nothing is merged.
  void MoveRollups(std::int64_t now_us) { MergeAll({.fold_no_max = FoldNo{0}, .now_us = now_us}); }
  // Until nothing more is to be done now; the sums of all calls.
  SweepResult SweepAll(std::int64_t now_us = kNowUs) {
    MoveRollups(now_us);
    return SweepWithoutMerges(now_us);
  }
  // For tests that stand in the middle of a merge, or look at sweeps alone.
  SweepResult SweepWithoutMerges(std::int64_t now_us = kNowUs) {
    SweepResult total;
    for (int calls = 0; calls < 10'000; ++calls) {
      const auto swept = caps_.Sweep(kEpoch, {.now_us = now_us}, kAllProjects);
      EXPECT_TRUE(swept.ok()) << swept.status();
      if (!swept.ok()) return total;
      for (const CapRemoval& each : swept->removed.removals) total.removed.Add(each);
      EXPECT_TRUE(swept->failed.ok()) << swept->failed;
      total.leaves_left = swept->leaves_left;
      total.leaves_emptied += swept->leaves_emptied;
      total.deleted_row_count += swept->deleted_row_count;
      if (!swept->more) break;
    }
    total.removed.Sort();
    return total;
  }

  // Sweeps of what this trial has fail until AllowGaps.
  void RefuseGapsOf(TrialId trial_id) {
    Run("create function stepwell.refuse_gap() returns trigger language plpgsql as "
        "$$ begin raise exception 'no gaps here'; end $$");
    Run(
        absl::StrCat("create trigger refuse_gap before insert on stepwell.gaps for each row "
                     "when (new.trial_id = ",
                     Value(trial_id), ") execute function stepwell.refuse_gap()"));
  }
  void AllowGaps() { Run("drop function stepwell.refuse_gap() cascade"); }

  // The ledger says what the tables hold, in rows, samples and bytes: those of leaves that were given up
  // and not emptied yet are not held any more. Between merges one may have come into such a leaf: what is
  // new there and what was given up is told apart no more, until the next sweeps.
  void ExpectLedgerAddsUp(bool between_merges = false) {
    EXPECT_EQ(Text(LedgerMismatchSql(between_merges)), "") << "held/ledger";
  }
  // What was sent is held, or a gap of cause CAP says so; rows and ticks refer to each other.
  void ExpectNothingVanished() {
    ExpectLedgerAddsUp();
    ExpectSentIsHeldOrGap();
    ExpectTicksFit("metrics", "ticks", "");
    ExpectRollupTicksFit();
  }
  void ExpectRollupTicksFit() {
    ExpectTicksFit("rollups", "rollup_ticks", ", step_seconds");
    ExpectTicksFit("recent_rollups", "recent_rollup_ticks", ", step_seconds");
  }
  // Group by group, but for a trial that has a gap of all its groups: then none says more than was sent, and
  // together they say all of it.
  void ExpectSentIsHeldOrGap() {
    std::map<std::int64_t, std::int64_t> sent_of_trial, told_of_trial;
    for (const auto& [key, sent] : sent_) {
      const auto& [trial_id, group] = key;
      const std::int64_t told = HeldOrGap(trial_id, group);
      const std::int64_t of_all = GapOf(trial_id, "");
      EXPECT_TRUE(told == sent || (of_all > 0 && told < sent))
          << "trial " << trial_id << " " << group << ": " << told << "/" << sent;
      sent_of_trial[trial_id] += sent;
      told_of_trial.try_emplace(trial_id, of_all);
      told_of_trial[trial_id] += told;
    }
    EXPECT_EQ(told_of_trial, sent_of_trial);
    EXPECT_EQ(Number("select count(*) from (select from stepwell.gaps where cause = 11 "
                     "group by trial_id, metric_group, reason having count(*) > 1) g"),
              0)
        << "gaps of one cap in several rows";
  }
  // In gaps of cause CAP of this group, or ('') of all of them.
  std::int64_t GapOf(std::int64_t trial_id, const std::string& group) {
    return Number(
        absl::StrCat("select coalesce(sum(sample_count), 0)::bigint from stepwell.gaps where "
                     "cause = 11 and trial_id = ",
                     trial_id, " and metric_group = '", group, "'"));
  }
  std::int64_t HeldOrGap(std::int64_t trial_id, const std::string& group) {
    return GapOf(trial_id, group) +
           Number(absl::StrCat("select coalesce(sum(sample_count), 0)::bigint from stepwell.usage "
                               "where trial_id = ",
                               trial_id, " and metric_group = '", group, "'"));
  }
  // No row without its ticks, no ticks without a row, no ticks twice.
  void ExpectTicksFit(const std::string& rows, const std::string& ticks, const std::string& more) {
    EXPECT_EQ(Text(TicksMismatchSql(rows, ticks, more)), "") << rows;
  }

  PgCapsStore caps_{{.url = url_}};
  // Samples that went in.
  Groups sent_;
};

}  // namespace stepwell::testing
