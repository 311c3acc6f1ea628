#include "storage/pg_sweeper_leaves.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_caps_read.h"
#include "storage/pg_ddl.h"
#include "storage/pg_error.h"
#include "storage/pg_fold_sql.h"
#include "storage/pg_owner.h"
#include "storage/pg_rollup_move.h"
#include "storage/pg_row_copy.h"
#include "storage/pg_sweeper_sql.h"

namespace stepwell {
namespace {

// Lines of the ledger in one transaction: some milliseconds, and some 100 kB of WAL with their gaps.
constexpr std::int64_t kLinesMax = 500;
// For kGiveUpSamples.
constexpr std::int64_t kNoTrial = 0;
constexpr std::int64_t kEachTrial = -1;
// A day makes up to 32 leaves; this many go in one call.
constexpr std::size_t kDropsMax = 64;

std::vector<const char*> TablesOf(LeafPair pair) {
  switch (pair) {
    case LeafPair::kSamples:
      return {"metrics", "ticks"};
    case LeafPair::kRollups:
      return {"rollups", "rollup_ticks"};
  }
  return {};
}

std::vector<SqlText> LeavesOf(LeafPair pair, const LeafKey& key) {
  std::vector<SqlText> leaves;
  for (const char* table : TablesOf(pair)) {
    leaves.push_back(LeafTable(table, key.keep_class, key.received_day));
  }
  return leaves;
}

SqlText ParentList(LeafPair pair) {
  std::vector<SqlText> parents;
  for (const char* table : TablesOf(pair)) {
    parents.push_back(SqlCat({"only stepwell.", SqlName(table)}));
  }
  return SqlJoin(parents, ", ");
}

// Nothing is there that any snapshot could see.
SqlText IsBareSql(LeafPair pair, const LeafKey& key) {
  std::vector<SqlText> sizes;
  for (const SqlText& leaf : LeavesOf(pair, key)) {
    sizes.push_back(SqlCat({"pg_relation_size(", SqlQuoted(leaf), ")"}));
  }
  return SqlCat({"select ", SqlJoin(sizes, " + ")});
}

PgDate DayOf(const LeafKey& key) { return PgDate{key.received_day}; }

// Of a line: its samples, and its rollups for themselves.
void AddRemovals(const PgResult& result, int row, std::vector<CapRemoval>& removed) {
  const CapRemoval line = {.trial_id = TrialId{result.Int64(row, 0)},
                           .metric_group = std::string(result.Text(row, 1))};
  CapRemoval& samples = removed.emplace_back(line);
  samples.field = "raw_age_seconds";
  samples.sample_count = result.Int64(row, 2);
  samples.raw_bytes = result.Int64(row, 3);
  if (samples.sample_count > 0) {
    samples.first_time_us = result.Int64(row, 5);
    samples.last_time_us = result.Int64(row, 6);
  }
  CapRemoval& rollups = removed.emplace_back(line);
  rollups.field = "rollup_age_seconds";
  rollups.rollup_bytes = result.Int64(row, 4);
}

// Of a statement that looked at kLinesMax lines at most, and tells how many.
bool MayBeMore(const PgResult& lines) {
  return lines.row_count() > 0 && lines.Int64(0, 7) == kLinesMax;
}

// Samples, or rollups with them; the mark moves where it is not 0.
absl::Status NoteGivenUp(PgConnection& connection, const LeafKey& key, LeafPair pair,
                         std::int64_t samples_through = 0) {
  return connection
      .Exec(sql::kNoteGivenUp,
            {key.keep_class, DayOf(key), pair == LeafPair::kRollups, samples_through})
      .status();
}

std::string PlaceOf(absl::string_view doing, const LeafKey& key) {
  return absl::StrCat(doing, " of class ", key.keep_class, ", day ", key.received_day);
}

// The leaf is not there any more.
bool IsGone(const absl::Status& status) { return SqlState(status) == "42P01"; }

}  // namespace

absl::Status PgLeafSweeper::Run(std::int64_t now_us) {
  STEPWELL_ASSIGN_OR_RETURN(const LeafSweep sweep, Plan(now_us));
  std::set<LeafKey> given_up;
  for (const LeafKey& key : sweep.give_up_all) {
    const auto done = GiveUp(key, Part::kAll);
    STEPWELL_RETURN_IF_ERROR(errors_.Take(done.status(), PlaceOf("give up all", key)));
    if (done.ok() && *done) given_up.insert(key);
  }
  for (const LeafKey& key : sweep.give_up_samples) {
    if (given_up.contains(key)) continue;
    const auto done = GiveUp(key, Part::kSamples);
    STEPWELL_RETURN_IF_ERROR(errors_.Take(done.status(), PlaceOf("give up samples", key)));
  }
  STEPWELL_RETURN_IF_ERROR(EmptyAll());
  return DropAll(sweep.drop);
}

absl::StatusOr<LeafSweep> PgLeafSweeper::Plan(std::int64_t now_us) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection_.Exec(sql::kListLeaves));
  std::vector<StoredLeaf> leaves;
  for (int row = 0; row < rows.row_count(); ++row) {
    const auto leaf = ParseLeafName(rows.Text(row, 0));
    if (leaf) leaves.push_back({.leaf = *leaf, .bytes = rows.Int64(row, 1)});
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<SweptLeaf> swept, ReadSwept());
  STEPWELL_ASSIGN_OR_RETURN(const KeepClasses classes, ReadKeepClasses(connection_));
  return PlanLeafSweep(leaves, swept, classes.all(), now_us);
}

absl::StatusOr<std::vector<SweptLeaf>> PgLeafSweeper::ReadSwept() {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection_.Exec(sql::kReadSweptLeaves));
  std::vector<SweptLeaf> swept;
  for (int row = 0; row < rows.row_count(); ++row) {
    swept.push_back({.key = {static_cast<std::int16_t>(rows.Int32(row, 0)), rows.DateDays(row, 1)},
                     .rollups_too = rows.Bool(row, 2),
                     .emptied = rows.Bool(row, 3),
                     .ledger_xid = rows.Int64(row, 4)});
  }
  return swept;
}

absl::StatusOr<bool> PgLeafSweeper::TakeInRollups(const LeafKey& key) {
  const RollupMove move = {.leaf = key};
  std::int64_t moved = 1;
  while (moved > 0 && !pace_.IsOver()) {
    CapRemovals nothing;
    const auto body = [&](std::vector<CapRemoval>&) -> absl::Status {
      STEPWELL_ASSIGN_OR_RETURN(moved, MoveRollups(connection_, move));
      return absl::OkStatus();
    };
    STEPWELL_RETURN_IF_ERROR(InSweepTransaction(connection_, owner_epoch_, nothing, body));
  }
  STEPWELL_ASSIGN_OR_RETURN(const bool wait, RollupsWait(connection_, key));
  return !wait;
}

absl::StatusOr<bool> PgLeafSweeper::GiveUp(const LeafKey& key, Part part) {
  if (part == Part::kAll) {
    STEPWELL_ASSIGN_OR_RETURN(const bool is_whole, TakeInRollups(key));
    if (!is_whole) {
      ++result_.leaves_left;
      return false;
    }
    return UntilDone([&] { return GiveUpLines(key); });
  }
  STEPWELL_ASSIGN_OR_RETURN(const bool marked, UntilDone([&] { return MarkSamples(key); }));
  if (!marked) return false;
  return UntilDone([&] { return GiveUpSamples(key, kNoTrial); });
}

absl::StatusOr<bool> PgLeafSweeper::UntilDone(const std::function<absl::StatusOr<bool>()>& step) {
  for (bool more = true; more && !pace_.IsOver();) {
    const auto done = step();
    if (IsLockTimeout(done.status())) {
      ++result_.leaves_left;
      return false;
    }
    STEPWELL_ASSIGN_OR_RETURN(more, done);
  }
  return true;
}

absl::StatusOr<bool> PgLeafSweeper::GiveUpLines(const LeafKey& key) {
  bool more = false;
  const auto body = [&](std::vector<CapRemoval>& removed) -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(LimitLockWaits(connection_));
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult lines,
        connection_.Exec(sql::kGiveUpLines, {key.keep_class, DayOf(key), kLinesMax}));
    for (int row = 0; row < lines.row_count(); ++row) AddRemovals(lines, row, removed);
    more = MayBeMore(lines);
    // Whoever wrote some meanwhile has committed lines that are among these, or waits to write them.
    STEPWELL_ASSIGN_OR_RETURN(const bool wait, RollupsWait(connection_, key));
    if (wait) return absl::UnavailableError("a merge wrote rollups meanwhile");
    STEPWELL_RETURN_IF_ERROR(NoteGapsOfLeaf(connection_, key, removed));
    return NoteGivenUp(connection_, key, LeafPair::kRollups);
  };
  STEPWELL_RETURN_IF_ERROR(InSweepTransaction(connection_, owner_epoch_, result_.removed, body));
  return more;
}

absl::StatusOr<bool> PgLeafSweeper::MarkSamples(const LeafKey& key) {
  MarkMove move;
  bool is_there = true;
  const auto body = [&](std::vector<CapRemoval>& removed) -> absl::Status {
    STEPWELL_ASSIGN_OR_RETURN(is_there, HoldOffMerges(key));
    if (!is_there) return absl::OkStatus();
    // A snapshot of behind the lock.
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult lines,
        connection_.Exec(sql::kReadLinesToMark, {key.keep_class, DayOf(key), kLinesMax}));
    std::vector<std::int64_t> trials;
    for (int row = 0; row < lines.row_count(); ++row) trials.push_back(lines.Int64(row, 0));
    move = PlanMark(trials, kLinesMax);
    for (int row = 0; row < lines.row_count(); ++row) {
      if (lines.Int64(row, 0) > move.through_trial_id) break;
      if (lines.Int64(row, 2) != 0 || lines.Int64(row, 3) != 0) AddRemovals(lines, row, removed);
    }
    // The mark first: gaps heed what the ledger says then.
    STEPWELL_RETURN_IF_ERROR(
        NoteGivenUp(connection_, key, LeafPair::kSamples, move.through_trial_id));
    return NoteGapsOfLeaf(connection_, key, removed);
  };
  STEPWELL_RETURN_IF_ERROR(InSweepTransaction(connection_, owner_epoch_, result_.removed, body));
  // Lines without their leaf: rows that vanished. A mark could not be moved against who brings it back.
  if (!is_there) return GiveUpSamples(key, kEachTrial);
  if (move.long_trial_id != 0) {
    STEPWELL_RETURN_IF_ERROR(GiveUpSamples(key, move.long_trial_id).status());
  }
  return move.more;
}

absl::StatusOr<bool> PgLeafSweeper::GiveUpSamples(const LeafKey& key, std::int64_t trial_id) {
  bool more = false;
  const auto body = [&](std::vector<CapRemoval>& removed) -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(LimitLockWaits(connection_));
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult lines,
        connection_.Exec(sql::kGiveUpSamples, {key.keep_class, DayOf(key), kLinesMax, trial_id}));
    if (lines.row_count() == 0) return absl::OkStatus();
    for (int row = 0; row < lines.row_count(); ++row) AddRemovals(lines, row, removed);
    more = MayBeMore(lines);
    STEPWELL_RETURN_IF_ERROR(NoteGapsOfLeaf(connection_, key, removed));
    return NoteGivenUp(connection_, key, LeafPair::kSamples);
  };
  STEPWELL_RETURN_IF_ERROR(InSweepTransaction(connection_, owner_epoch_, result_.removed, body));
  return more;
}

absl::StatusOr<bool> PgLeafSweeper::HoldOffMerges(const LeafKey& key) {
  STEPWELL_RETURN_IF_ERROR(LimitLockWaits(connection_));
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<SqlText> leaves, Existing({.key = key}));
  if (leaves.size() < LeavesOf(LeafPair::kSamples, key).size()) return false;
  STEPWELL_RETURN_IF_ERROR(
      connection_.ExecScript(SqlCat({"lock table ", SqlJoin(leaves, ", "), " in share mode"})));
  return true;
}

absl::Status PgLeafSweeper::EmptyAll() {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<SweptLeaf> swept, ReadSwept());
  for (const SweptLeaf& leaf : swept) {
    if (leaf.emptied) continue;
    if (pace_.IsOver()) break;
    STEPWELL_RETURN_IF_ERROR(errors_.Take(Empty(leaf), PlaceOf("empty", leaf.key)));
  }
  return absl::OkStatus();
}

absl::Status PgLeafSweeper::Empty(const SweptLeaf& leaf) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult older,
      connection_.Exec(sql::kCountOlderSnapshots, {absl::StrCat(leaf.ledger_xid)}));
  if (older.Int64(0, 0) > 0) {
    ++result_.leaves_left;
    return absl::OkStatus();
  }
  const auto truncated = Truncate(leaf);
  if (IsLockTimeout(truncated.status())) {
    ++result_.leaves_left;
    return absl::OkStatus();
  }
  STEPWELL_RETURN_IF_ERROR(truncated.status());
  if (*truncated == Truncation::kDone) {
    ++result_.leaves_emptied;
    return absl::OkStatus();
  }
  ++result_.leaves_left;
  // What came into it is given up once more; a next sweep empties it.
  if (!leaf.rollups_too) return GiveUp(leaf.key, Part::kSamples).status();
  const auto given_up = GiveUp(leaf.key, Part::kAll);
  if (!given_up.ok() || *given_up) return given_up.status();
  // Rollups wait to be merged; samples need not.
  return GiveUp(leaf.key, Part::kSamples).status();
}

absl::StatusOr<std::vector<SqlText>> PgLeafSweeper::Existing(const SweptLeaf& leaf) {
  std::vector<SqlText> all;
  std::vector<std::string> names;
  for (const LeafPair pair : {LeafPair::kSamples, LeafPair::kRollups}) {
    if (pair == LeafPair::kRollups && !leaf.rollups_too) continue;
    for (SqlText& table : LeavesOf(pair, leaf.key)) {
      names.emplace_back(table.text());
      all.push_back(std::move(table));
    }
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows,
                            connection_.Exec(sql::kFindTables, {PgArray(names)}));
  std::vector<SqlText> existing;
  for (int row = 0; row < rows.row_count(); ++row) {
    existing.push_back(std::move(all.at(static_cast<std::size_t>(rows.Int64(row, 0)) - 1)));
  }
  return existing;
}

absl::StatusOr<bool> PgLeafSweeper::MayGetRows(const LeafKey& key) {
  const auto rows = connection_.Exec(sql::kDayHasRecentTicks, {DayOf(key)});
  // Rows of the day may lie there.
  if (IsUnreadable(rows.status())) return true;
  STEPWELL_RETURN_IF_ERROR(rows.status());
  return rows->Bool(0, 0);
}

absl::StatusOr<PgLeafSweeper::Truncation> PgLeafSweeper::Truncate(const SweptLeaf& leaf) {
  // Without a lock that holds up others first.
  STEPWELL_ASSIGN_OR_RETURN(const bool may_get_rows, MayGetRows(leaf.key));
  if (may_get_rows) return Truncation::kMergeUnderWay;
  Truncation done = Truncation::kHasLines;
  const absl::Status emptied = InDdlTransaction(connection_, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection_, owner_epoch_));
    // Those of samples may have been dropped long before their rollups go.
    STEPWELL_ASSIGN_OR_RETURN(const std::vector<SqlText> leaves, Existing(leaf));
    const SqlText list = SqlJoin(leaves, ", ");
    if (!leaves.empty()) {
      STEPWELL_RETURN_IF_ERROR(
          connection_.ExecScript(SqlCat({"lock table ", list, " in access exclusive mode"})));
    }
    // Whoever merged into the leaf has committed its lines by now.
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult lines,
        connection_.Exec(sql::kLeafHasLines, {leaf.key.keep_class, DayOf(leaf.key)}));
    if (lines.Bool(0, 0) || (leaf.rollups_too && lines.Bool(0, 1))) return absl::OkStatus();
    STEPWELL_ASSIGN_OR_RETURN(const bool merges_go_on, MayGetRows(leaf.key));
    done = merges_go_on ? Truncation::kMergeUnderWay : Truncation::kDone;
    if (merges_go_on) return absl::OkStatus();
    if (!leaves.empty()) {
      STEPWELL_RETURN_IF_ERROR(connection_.ExecScript(SqlCat({"truncate ", list})));
    }
    STEPWELL_RETURN_IF_ERROR(
        connection_.Exec(sql::kNoteEmptied, {leaf.key.keep_class, DayOf(leaf.key)}).status());
    return failpoint::Check("sweep_before_truncate");
  });
  STEPWELL_RETURN_IF_ERROR(emptied);
  if (done == Truncation::kDone) STEPWELL_FAILPOINT("sweep_after_truncate");
  return done;
}

absl::Status PgLeafSweeper::DropAll(const std::vector<NamedLeaf>& leaves) {
  // Both leaves of a pair are in the plan at most once each.
  std::map<std::pair<LeafKey, LeafPair>, NamedLeaf> pairs;
  for (const NamedLeaf& leaf : leaves) pairs.emplace(std::pair(leaf.key, leaf.pair), leaf);
  std::size_t count = 0;
  for (const auto& [key, leaf] : pairs) {
    if (count++ >= kDropsMax || pace_.IsOver()) break;
    const absl::Status dropped = Drop(leaf);
    // A lock of a parent makes readers wait behind it: one failure is enough for one sweep.
    if (IsLockTimeout(dropped)) break;
    STEPWELL_RETURN_IF_ERROR(errors_.Take(dropped, PlaceOf("drop", leaf.key)));
  }
  return absl::OkStatus();
}

absl::Status PgLeafSweeper::Drop(const NamedLeaf& leaf) {
  if (leaf.pair == LeafPair::kRollups) {
    // The ledger names the leaf to readers, and they will move into it.
    STEPWELL_ASSIGN_OR_RETURN(const bool wait, RollupsWait(connection_, leaf.key));
    if (wait) return absl::OkStatus();
  }
  const SqlText list = SqlJoin(LeavesOf(leaf.pair, leaf.key), ", ");
  const absl::Status status = InDdlTransaction(connection_, [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(connection_, owner_epoch_));
    // In the order of a reader's locks.
    STEPWELL_RETURN_IF_ERROR(connection_.ExecScript(
        SqlCat({"lock table ", ParentList(leaf.pair), " in access exclusive mode; lock table ",
                list, " in access exclusive mode"})));
    STEPWELL_ASSIGN_OR_RETURN(const PgResult size,
                              connection_.Exec(IsBareSql(leaf.pair, leaf.key)));
    if (size.Int64(0, 0) > 0) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(connection_.ExecScript(SqlCat({"drop table ", list})));
    STEPWELL_RETURN_IF_ERROR(
        connection_.Exec(sql::kDropLines, {leaf.key.keep_class, DayOf(leaf.key)}).status());
    STEPWELL_RETURN_IF_ERROR(failpoint::Check("sweep_before_drop"));
    if (leaf.pair == LeafPair::kSamples) return absl::OkStatus();
    return connection_.Exec(sql::kForgetSwept, {leaf.key.keep_class, DayOf(leaf.key)}).status();
  });
  return IsGone(status) ? absl::OkStatus() : status;
}

}  // namespace stepwell
