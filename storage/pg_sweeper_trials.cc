#include "storage/pg_sweeper_trials.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/pg_row_copy.h"
#include "storage/pg_sweeper_sql.h"
#include "storage/pg_sweeper_traces.h"
#include "storage/recent_ring.h"
#include "storage/rollup_ring.h"

namespace stepwell {
namespace {

// Of one transaction, whatever they have in common: some 10 ms, with what TOAST holds of them.
constexpr std::int64_t kRowsMax = 1000;

struct Table {
  const char* name;
  const char* order;  // the first column after trial_id of its index
};
constexpr Table kLeafTables[] = {{"metrics", "series_no"},
                                 {"ticks", "writer_no"},
                                 {"rollups", "series_no"},
                                 {"rollup_ticks", "writer_no"}};
// After the leaves; attempts last.
constexpr Table kSmallTables[] = {{"series", "series_no"},
                                  {"gaps", "writer_no"},
                                  {"writer_origins", "writer_no"},
                                  {"attempts", "attempt"}};

}  // namespace

absl::Status PgTrialSweeper::Run(SweepErrors& errors) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection_.Exec(sql::kListBuried));
  std::set<TrialId> trials;
  for (int row = 0; row < rows.row_count(); ++row) trials.insert(TrialId{rows.Int64(row, 0)});
  std::erase_if(up_to_, [&](const auto& each) { return !trials.contains(each.first); });
  pace_.Start();
  for (int row = 0; row < rows.row_count() && !pace_.IsOver(); ++row) {
    const TrialId trial_id{rows.Int64(row, 0)};
    STEPWELL_RETURN_IF_ERROR(
        errors.Take(Clear(trial_id).status(), absl::StrCat("deleted trial ", Value(trial_id))));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> PgTrialSweeper::Clear(TrialId trial_id) {
  // Each place once, in the order in which rows go from one to the next: from recent into leaves, by merges that
  // had begun before the trial was deleted and have ended since (CheckOwnerOfLiving); from segments of rollups into
  // leaves, whoever is deleted. Round the ring of recent nobody carries them (PgRecentRecycler).
  for (int segment = 0; segment < RecentRing::kSegmentCount; ++segment) {
    for (const Table& table : {Table{"recent", "series_no"}, Table{"recent_ticks", "writer_no"}}) {
      const SqlText name = SqlName(absl::StrCat(table.name, "_", segment));
      STEPWELL_ASSIGN_OR_RETURN(const bool done,
                                Drain(trial_id, SqlCat({"stepwell.", name}), table.order));
      if (!done) return false;
    }
  }
  for (int segment = 0; segment < kRollupSegments; ++segment) {
    for (const Table& table : {Table{"rollups", "series_no"}, Table{"rollup_ticks", "writer_no"}}) {
      STEPWELL_ASSIGN_OR_RETURN(const bool done,
                                Drain(trial_id, RollupSegment(table.name, segment), table.order));
      if (!done) return false;
    }
  }
  STEPWELL_ASSIGN_OR_RETURN(const bool leaves_done, DrainLeaves(trial_id));
  if (!leaves_done) return false;
  SweepResult of_traces;
  PgTraceSweeper traces(connection_, owner_epoch_, pace_, of_traces);
  STEPWELL_ASSIGN_OR_RETURN(const bool traces_done, traces.ClearTrial(trial_id));
  advanced_ = advanced_ || of_traces.advanced;
  if (!traces_done) return false;
  for (const Table& table : kSmallTables) {
    STEPWELL_ASSIGN_OR_RETURN(
        const bool done, Drain(trial_id, SqlCat({"stepwell.", SqlName(table.name)}), table.order));
    if (!done) return false;
  }
  CapRemovals nothing;
  const absl::Status swept = InSweepTransaction(
      connection_, owner_epoch_, nothing, [&](std::vector<CapRemoval>&) -> absl::Status {
        STEPWELL_RETURN_IF_ERROR(
            connection_.Exec(sql::kDropCapsOfBuried, {Value(trial_id)}).status());
        return connection_.Exec(sql::kEndBurial, {Value(trial_id)}).status();
      });
  STEPWELL_RETURN_IF_ERROR(swept);
  up_to_.erase(trial_id);
  advanced_ = true;
  return true;
}

absl::StatusOr<bool> PgTrialSweeper::DrainLeaves(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult leaves,
                            connection_.Exec(sql::kListLeavesOfBuried, {Value(trial_id)}));
  LeafKey& up_to = up_to_.try_emplace(trial_id, LeafKey{.keep_class = -1}).first->second;
  for (int row = 0; row < leaves.row_count(); ++row) {
    const LeafKey leaf = {static_cast<std::int16_t>(leaves.Int32(row, 0)), leaves.DateDays(row, 1)};
    const bool has_lines = leaves.Bool(row, 2);
    // With each call anew they would take all of its time, and no call would come behind them.
    if (!has_lines && leaf <= up_to) continue;
    if (IsOver()) return false;
    STEPWELL_ASSIGN_OR_RETURN(const bool done, DrainLeaf(trial_id, leaf));
    if (!done) return false;
    if (has_lines) STEPWELL_RETURN_IF_ERROR(DropLines(trial_id, leaf));
    up_to = std::max(up_to, leaf);
    advanced_ = true;
  }
  return true;
}

absl::StatusOr<bool> PgTrialSweeper::DrainLeaf(TrialId trial_id, const LeafKey& leaf) {
  for (const Table& table : kLeafTables) {
    STEPWELL_ASSIGN_OR_RETURN(
        const bool done,
        Drain(trial_id, LeafTable(table.name, leaf.keep_class, leaf.received_day), table.order));
    if (!done) return false;
  }
  return true;
}

absl::Status PgTrialSweeper::DropLines(TrialId trial_id, const LeafKey& leaf) {
  CapRemovals nothing;
  return InSweepTransaction(
      connection_, owner_epoch_, nothing, [&](std::vector<CapRemoval>&) -> absl::Status {
        return connection_
            .Exec(sql::kDropLinesOfBuried,
                  {Value(trial_id), PgDate{leaf.received_day}, leaf.keep_class})
            .status();
      });
}

absl::StatusOr<bool> PgTrialSweeper::Drain(TrialId trial_id, const SqlText& table,
                                           const char* order) {
  const SqlText column = SqlName(order);
  // Without a transaction to wait for: most tables hold nothing of the trial, or nothing any more.
  const auto first =
      connection_.Exec(SqlCat({"select ", column, " from ", table, " where trial_id = $1 order by ",
                               column, " limit 1"}),
                       {Value(trial_id)});
  if (SqlState(first.status()) == "42P01") return true;
  STEPWELL_RETURN_IF_ERROR(first.status());
  if (first->row_count() == 0) return true;
  // From where the last slice ended: what it deleted stays in the index for a while. By where the rows lie, which
  // only a table without partitions says: one series may have any number of them.
  const SqlText statement =
      SqlCat({"with top as materialized (select ctid as id, ", column, " as o from ", table,
              " where trial_id = $1 and ", column, " >= $2 order by ", column,
              " limit $3), gone as (delete from ", table,
              " where ctid = any(array(select id from top)) returning 1) "
              "select (select count(*) from top), coalesce((select max(o) from top), 0), "
              "count(*) from gone"});
  std::int32_t from = first->Int32(0, 0);
  for (bool more = true; more;) {
    if (IsOver()) return false;
    CapRemovals nothing;
    const absl::Status status = InSweepTransaction(
        connection_, owner_epoch_, nothing, [&](std::vector<CapRemoval>&) -> absl::Status {
          STEPWELL_ASSIGN_OR_RETURN(const PgResult gone,
                                    connection_.Exec(statement, {Value(trial_id), from, kRowsMax}));
          row_count_ += gone.Int64(0, 2);
          advanced_ = advanced_ || gone.Int64(0, 2) > 0;
          more = gone.Int64(0, 0) == kRowsMax;
          from = gone.Int32(0, 1);
          return absl::OkStatus();
        });
    if (SqlState(status) == "42P01") return true;
    STEPWELL_RETURN_IF_ERROR(status);
  }
  return true;
}

}  // namespace stepwell
