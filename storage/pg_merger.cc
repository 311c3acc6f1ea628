#include "storage/pg_merger.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/fold_plan.h"
#include "storage/merge_plan.h"
#include "storage/pg_array.h"
#include "storage/pg_book_change.h"
#include "storage/pg_caps_read.h"
#include "storage/pg_fold_sql.h"
#include "storage/pg_folder.h"
#include "storage/pg_merge_copy.h"
#include "storage/pg_owner.h"
#include "storage/pg_row_copy.h"
#include "storage/pg_row_read.h"
#include "storage/stretch.h"

namespace stepwell {
namespace {

constexpr std::int64_t kSlowAgeFactor = 24;
constexpr std::size_t kUnjoinedMax = 10'000;
// Of a work, more or less: joined, a series on them is 25 MB.
constexpr std::int64_t kWorkTicksMax = 1'000'000;
constexpr char kUndefinedTable[] = "42P01";

std::vector<std::int64_t> TickNosOf(const std::vector<RecentTicksRow>& ticks) {
  std::vector<std::int64_t> numbers;
  for (const RecentTicksRow& row : ticks) numbers.push_back(row.place.tick_no);
  return numbers;
}

// The first and the last; 0 and 0 where there are none.
std::pair<std::int64_t, std::int64_t> TimesOf(const std::vector<RecentTicksRow>& ticks) {
  if (ticks.empty()) return {0, 0};
  std::pair times(ticks.front().ticks.first_time_us, ticks.front().ticks.last_time_us);
  for (const RecentTicksRow& row : ticks) {
    times.first = std::min(times.first, row.ticks.first_time_us);
    times.second = std::max(times.second, row.ticks.last_time_us);
  }
  return times;
}

std::vector<std::int32_t> NumbersOf(const std::vector<SeriesNo>& series) {
  std::vector<std::int32_t> numbers;
  for (const SeriesNo series_no : series) numbers.push_back(Value(series_no));
  return numbers;
}

std::int64_t NowUs(const MergeLimits& limits) {
  return limits.now_us != 0 ? limits.now_us : absl::ToUnixMicros(absl::Now());
}

absl::Status ExpectCount(std::int64_t deleted, std::size_t expected) {
  if (deleted == static_cast<std::int64_t>(expected)) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("merge: ", deleted, " of ", expected, " recent rows were there to be deleted"));
}

}  // namespace

struct PgMerger::Slice {
  std::vector<SeriesNo> series;
  std::vector<RecentColumnRow> columns;
  std::vector<MergedStretch> merged;
  bool is_first = false;
  bool is_last = false;
};

void PgMerger::Forget() {
  picked_.clear();
  work_.reset();
  groups_.Clear();
  leaves_.Clear();
  rollup_ring_.Forget();
}

absl::StatusOr<MergeResult> PgMerger::Merge(std::int64_t owner_epoch, const MergeLimits& limits) {
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link_.Get());
  first_open_day_ = DayOf(NowUs(limits) - limits.ripe_age_us);
  const bool picks_now = !work_.has_value() && picked_.empty();
  if (picks_now) STEPWELL_RETURN_IF_ERROR(Annotate(Pick(*connection, limits), "pick what is ripe"));
  if (!work_.has_value() && picked_.empty()) return MoveRollups(*connection, owner_epoch);
  MergeResult result;
  const StretchKey first = work_.has_value() ? work_->key : picked_.front();
  const absl::Status merged = Run(*connection, owner_epoch, limits, result);
  if (!merged.ok()) {
    const StretchKey at = work_.has_value() ? work_->key : first;
    const bool joins = work_.has_value() && work_->rollups.joins();
    Forget();
    link_.Drop();
    STEPWELL_RETURN_IF_ERROR(TakeFailure(merged, at, joins));
    return MergeResult{.more = true};
  }
  leaf_was_gone_ = false;
  aside_.Succeeded();
  // What an earlier call had picked may not be all that is ripe now.
  result.more = work_.has_value() || !picked_.empty() || !picks_now || picked_in_part_;
  return result;
}

absl::StatusOr<MergeResult> PgMerger::MoveRollups(PgConnection& connection,
                                                  std::int64_t owner_epoch) {
  using Outcome = BookChanges::Outcome;
  const absl::StatusOr<bool> moved = ChangeBook(
      book_changes_, BookScope::All(),
      [&] { return rollup_ring_.MoveBefore(connection, owner_epoch, first_open_day_); },
      // Most calls find nothing that is ripe.
      [](const auto& any) {
        return any.ok() && !*any ? Outcome::kNothing : ChangeOutcome(any.status());
      });
  if (moved.ok()) return MergeResult{.more = *moved};
  Forget();
  link_.Drop();
  return Annotate(moved.status(), "move rollups into their leaves");
}

// OK where the next call does better.
absl::Status PgMerger::TakeFailure(const absl::Status& status, const StretchKey& at, bool joins) {
  // A sweep dropped the leaf, which had been empty for days: it is attached again. Sweeps that follow each other may drop that
  // one, too: no reason to put rows aside, but one to begin anew, a little later.
  leaf_was_gone_ = SqlState(status) == kUndefinedTable && !leaf_was_gone_;
  if (leaf_was_gone_) {
    log::Warning("merge_leaf_gone", {{"status", status.ToString()}});
    return absl::OkStatus();
  }
  if (SqlState(status) == kUndefinedTable) return Annotate(status, "merge");
  const auto tell = [&](absl::string_view event) {
    log::Error(event, {{"trial", Value(std::get<TrialId>(at))},
                       {"writer", Value(std::get<WriterNo>(at))},
                       {"reason", status.message()}});
  };
  if (absl::IsDataLoss(status) && joins && unjoined_.size() < kUnjoinedMax &&
      unjoined_.insert(at).second) {
    // Should its own rows be the damaged ones, they fail again.
    tell("rollups_damaged");
    return absl::OkStatus();
  }
  const SteadyTime now = SteadyTime::Now();
  // Of ours: what the server cannot read (XX001) may be an index of somewhere else.
  if (absl::IsDataLoss(status) && SqlState(status).empty()) {
    aside_.Damaged(at, now);
    tell("recent_rows_damaged");
    return absl::OkStatus();
  }
  const MergeAside::Ruling ruling = aside_.Failed(at, status, now);
  if (ruling == MergeAside::Ruling::kTryAgain) return Annotate(status, "merge");
  tell("merge_put_aside");
  return absl::OkStatus();
}

absl::Status PgMerger::Pick(PgConnection& connection, const MergeLimits& limits) {
  const std::int64_t now_us = NowUs(limits);
  const std::int64_t ripe_us = now_us - limits.ripe_age_us;
  std::vector<std::int64_t> trials;
  std::vector<std::int32_t> writers, tick_groups, days;
  for (const auto& [trial_id, writer_no, tick_group, day] : aside_.Held(SteadyTime::Now())) {
    trials.push_back(Value(trial_id));
    writers.push_back(Value(writer_no));
    tick_groups.push_back(tick_group);
    days.push_back(day);
  }
  const std::vector<std::int16_t> segments = ring_.listable();
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(sql::kPickRipe,
                      {Value(limits.fold_no_max), std::int64_t{limits.ripe_tick_count}, ripe_us,
                       static_cast<std::int64_t>(kSlowTicksPerHour),
                       now_us - kSlowAgeFactor * limits.ripe_age_us, PgDate{DayOf(ripe_us)},
                       limits.picks_max, PgArray(trials), PgArray(writers), PgArray(tick_groups),
                       PgArray(days), PgArray(segments)}));
  picked_in_part_ = rows.row_count() == limits.picks_max;
  for (int row = 0; row < rows.row_count(); ++row) {
    picked_.emplace_back(TrialId{rows.Int64(row, 0)}, WriterNo{rows.Int32(row, 1)},
                         rows.Int32(row, 2), rows.DateDays(row, 3));
  }
  return absl::OkStatus();
}

absl::Status PgMerger::Run(PgConnection& connection, std::int64_t owner_epoch,
                           const MergeLimits& limits, MergeResult& result) {
  // One trial per transaction: its owner is checked once, and on a sharded database it stays local.
  const StretchKey& next = work_.has_value() ? work_->key : picked_.front();
  const TrialId trial_id = std::get<TrialId>(next);
  // Before the transaction: leaves are attached in transactions of their own.
  STEPWELL_ASSIGN_OR_RETURN(const KeepPlan plan, ReadKeepPlan(connection, trial_id));
  STEPWELL_RETURN_IF_ERROR(EnsureLeaves(connection, plan, std::get<3>(next)));
  bool is_deleted = false;
  const auto merge = [&]() -> absl::Status {
    STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> deleted,
                              CheckOwnerOfLiving(connection, {Value(trial_id)}, owner_epoch));
    is_deleted = !deleted.empty();
    if (is_deleted) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(MergeTrial(connection, limits, plan, result));
    return failpoint::Check("merge_before_commit");
  };
  STEPWELL_RETURN_IF_ERROR(ChangeBook(book_changes_, BookScope::Of(trial_id),
                                      [&] { return connection.InTransaction(merge); }));
  if (is_deleted) {
    DropTrial(trial_id);
    return absl::OkStatus();
  }
  STEPWELL_FAILPOINT("merge_after_commit");
  return absl::OkStatus();
}

absl::Status PgMerger::EnsureLeaves(PgConnection& connection, const KeepPlan& plan,
                                    std::int32_t received_day) {
  for (const KeepClass& each : plan.used()) {
    STEPWELL_RETURN_IF_ERROR(leaves_.Ensure(connection, each.keep_class, received_day));
  }
  return absl::OkStatus();
}

absl::Status PgMerger::MergeTrial(PgConnection& connection, const MergeLimits& limits,
                                  const KeepPlan& plan, MergeResult& result) {
  STEPWELL_ASSIGN_OR_RETURN(const bool holds, HoldKeepPlan(connection, plan));
  if (!holds) return absl::UnavailableError("caps changed meanwhile");
  if (work_.has_value()) {
    // Begun under caps of before; what is written of it stays with them, and so does the rest, as
    // long as there are such classes.
    STEPWELL_ASSIGN_OR_RETURN(const bool holds_still,
                              HoldKeepPlan(connection, work_->classes.plan()));
    if (!holds_still) return absl::UnavailableError("the classes of a merge under way changed");
  }
  const StretchKey& next = work_.has_value() ? work_->key : picked_.front();
  const TrialId trial_id = std::get<TrialId>(next);
  const std::int32_t received_day = std::get<3>(next);
  rows_done_ = 0;
  while (rows_done_ < limits.rows_max) {
    if (!work_.has_value()) {
      if (picked_.empty() || std::get<TrialId>(picked_.front()) != trial_id ||
          std::get<3>(picked_.front()) != received_day) {
        break;
      }
      STEPWELL_ASSIGN_OR_RETURN(work_, Begin(connection, picked_.front(), limits, plan));
      picked_.pop_front();
      // The rest is picked anew, if it is ripe still, with whatever became ripe meanwhile: what many rows wait for holds
      // up nobody.
      picked_in_part_ = picked_in_part_ || !work_->is_whole;
      STEPWELL_RETURN_IF_ERROR(PlanRollupsOf(connection, *work_));
    }
    // For the order of locks; see PgRollupJoiner.
    const bool joins = work_->rollups.joins();
    if (joins && rows_done_ > 0) break;
    const auto rows_left = static_cast<std::size_t>(limits.rows_max - rows_done_);
    STEPWELL_RETURN_IF_ERROR(MergeSlice(connection, rows_left, result));
    if (work_->series_done == work_->series.size()) work_.reset();
    if (joins) break;
  }
  return absl::OkStatus();
}

void PgMerger::DropTrial(TrialId trial_id) {
  if (work_.has_value() && std::get<TrialId>(work_->key) == trial_id) work_.reset();
  std::erase_if(picked_, [&](const StretchKey& key) { return std::get<TrialId>(key) == trial_id; });
}

absl::StatusOr<PgMerger::Work> PgMerger::Begin(PgConnection& connection, const StretchKey& key,
                                               const MergeLimits& limits, const KeepPlan& plan) {
  static const SqlText statement =
      SqlCat({"select segment, fold_no, received_time_us, series_nos, ", kTicksColumnList,
              sql::kFromRecentTicks});
  const auto& [trial_id, writer_no, tick_group, received_day] = key;
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.ExecKept(statement,
                          {Value(trial_id), Value(writer_no), tick_group, PgDate{received_day},
                           Value(limits.fold_no_max), std::int64_t{limits.ticks_rows_max}}));
  Work work;
  work.key = key;
  std::int64_t tick_count = 0;
  for (int row = 0; row < rows.row_count() && tick_count < kWorkTicksMax; ++row) {
    work.ticks.push_back(ReadRecentTicks(rows, row));
    tick_count += work.ticks.back().ticks.tick_count;
  }
  work.is_whole = rows.row_count() < limits.ticks_rows_max &&
                  work.ticks.size() == static_cast<std::size_t>(rows.row_count());
  work.series = SeriesOn(work.ticks);
  if (!work.series.empty()) {
    STEPWELL_RETURN_IF_ERROR(groups_.Prepare(connection, {{trial_id, work.series.back()}}));
  }
  std::vector<const std::string*> groups;
  for (const SeriesNo series_no : work.series) {
    groups.push_back(&groups_.GroupOf(trial_id, series_no));
  }
  work.classes = MergeClasses(plan, work.series, groups);
  return work;
}

void PgMerger::NoteRollups(const Work& work) {
  const std::int32_t received_day = std::get<3>(work.key);
  for (const auto& [keep_class, series_nos] : work.classes.by_class()) {
    rollup_ring_.NoteWritten({keep_class, received_day});
  }
}

absl::Status PgMerger::PlanRollupsOf(PgConnection& connection, Work& work) {
  const auto& [trial_id, writer_no, tick_group, received_day] = work.key;
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<StretchRollups> stretches, RollUpRecent(work.ticks));
  STEPWELL_ASSIGN_OR_RETURN(
      work.rollups,
      PgRollupJoiner::Plan(
          connection, {.trial_id = trial_id, .writer_no = writer_no, .received_day = received_day},
          work.classes, stretches,
          {.narrow_rows = unjoined_.contains(work.key) ? PgRollupJoiner::NarrowRows::kLeave
                                                       : PgRollupJoiner::NarrowRows::kJoin,
           .day = received_day < first_open_day_ ? PgRollupJoiner::Day::kIsOver
                                                 : PgRollupJoiner::Day::kGoesOn}));
  NoteRollups(work);
  if (!work.rollups.joins()) return absl::OkStatus();
  std::vector<SeriesNo> series;
  const std::vector<SeriesNo>& narrow = work.rollups.narrow_series();
  std::set_union(work.series.begin(), work.series.end(), narrow.begin(), narrow.end(),
                 std::back_inserter(series));
  work.series = std::move(series);
  return groups_.Prepare(connection, {{trial_id, work.series.back()}});
}

absl::Status PgMerger::MergeSlice(PgConnection& connection, std::size_t rows_max,
                                  MergeResult& result) {
  // Each slice again: a fold that was refused since forgot them.
  if (!work_->series.empty()) {
    const TrialId trial_id = std::get<TrialId>(work_->key);
    STEPWELL_RETURN_IF_ERROR(groups_.Prepare(connection, {{trial_id, work_->series.back()}}));
  }
  STEPWELL_ASSIGN_OR_RETURN(const Slice slice, ReadSlice(connection, rows_max));
  UsageLedger usage;
  STEPWELL_RETURN_IF_ERROR(CopySlice(connection, slice, usage, result));
  STEPWELL_FAILPOINT("merge_before_delete");
  STEPWELL_RETURN_IF_ERROR(DeleteSlice(connection, slice, usage));
  STEPWELL_RETURN_IF_ERROR(WriteUsage(connection, usage));
  work_->series_done += slice.series.size();
  result.recent_rows_taken += static_cast<std::int64_t>(slice.columns.size()) + 1;
  rows_done_ += static_cast<std::int64_t>(slice.columns.size() +
                                          slice.series.size() * work_->rollups.narrow_count() + 1);
  return absl::OkStatus();
}

absl::StatusOr<PgMerger::Slice> PgMerger::ReadSlice(PgConnection& connection,
                                                    std::size_t rows_max) {
  static const SqlText statement = SqlCat({"select ", kMetricsColumnList, sql::kFromRecent});
  Slice slice;
  const std::size_t rows_per_series =
      std::max<std::size_t>(1, work_->ticks.size() + work_->rollups.narrow_count());
  const std::size_t series_count = std::min(work_->series.size() - work_->series_done,
                                            std::max<std::size_t>(1, rows_max / rows_per_series));
  const auto begin = work_->series.begin() + static_cast<std::ptrdiff_t>(work_->series_done);
  slice.series.assign(begin, begin + static_cast<std::ptrdiff_t>(series_count));
  slice.is_first = work_->series_done == 0;
  slice.is_last = work_->series_done + series_count == work_->series.size();
  const std::vector<std::int32_t> series_nos = NumbersOf(slice.series);
  const std::vector<std::int64_t> tick_nos = TickNosOf(work_->ticks);
  const auto [first_us, last_us] = TimesOf(work_->ticks);
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.ExecKept(statement, {Value(std::get<TrialId>(work_->key)), PgArray(series_nos),
                                      PgArray(tick_nos), first_us, last_us}));
  for (int row = 0; row < rows.row_count(); ++row) {
    slice.columns.push_back(ReadRecentColumn(rows, row));
  }
  STEPWELL_ASSIGN_OR_RETURN(slice.merged, JoinRecent(work_->ticks, slice.columns));
  return slice;
}

absl::Status PgMerger::CopySlice(PgConnection& connection, const Slice& slice, UsageLedger& usage,
                                 MergeResult& result) {
  const auto& [trial_id, writer_no, tick_group, received_day] = work_->key;
  if (slice.merged.empty() || slice.series.empty()) return absl::OkStatus();
  // Each slice again: the ring may have read anew what is there, before this one.
  NoteRollups(*work_);
  if (slice.is_first) {
    const auto count = static_cast<std::int64_t>(slice.merged.size());
    STEPWELL_ASSIGN_OR_RETURN(
        const std::vector<std::int64_t> numbers,
        NextFoldNumbers(connection, (count + kTicksPerFoldNo - 1) / kTicksPerFoldNo));
    for (std::int64_t i = 0; i < count; ++i) {
      work_->tick_nos.push_back(numbers[static_cast<std::size_t>(i / kTicksPerFoldNo)] *
                                    kTicksPerFoldNo +
                                i % kTicksPerFoldNo);
    }
  }
  STEPWELL_RETURN_IF_ERROR(
      work_->rollups.TakeRows(connection, NumbersOf(slice.series), groups_, usage));
  STEPWELL_RETURN_IF_ERROR(work_->rollups.HoldLines(connection));
  MergeCopy copy(groups_, usage);
  RowPlace place{.trial_id = trial_id, .writer_no = writer_no, .received_day = received_day};
  for (std::size_t i = 0; i < slice.merged.size(); ++i) {
    place.tick_no = work_->tick_nos[i];
    copy.Add(place, i, slice.merged[i].ticks, work_->classes);
    for (const EncodedColumn& column : slice.merged[i].ticks.columns) {
      growth_.NoteRows({work_->classes.ClassOf(column.series_no), received_day}, 1);
      ++result.metrics_rows_made;
    }
  }
  work_->rollups.CopyInto(slice.merged, work_->tick_nos, work_->classes, copy);
  return copy.Send(connection);
}

absl::Status PgMerger::DeleteSlice(PgConnection& connection, const Slice& slice,
                                   UsageLedger& usage) {
  const auto& [trial_id, writer_no, tick_group, received_day] = work_->key;
  const std::vector<std::int64_t> tick_nos = TickNosOf(work_->ticks);
  const auto [first_us, last_us] = TimesOf(work_->ticks);
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult deleted,
      connection.ExecKept(sql::kDeleteRecent, {Value(trial_id), PgArray(NumbersOf(slice.series)),
                                               PgArray(tick_nos), first_us, last_us}));
  STEPWELL_RETURN_IF_ERROR(ExpectCount(deleted.affected_count(), slice.columns.size()));
  // What the fold had counted: the same rows laid out once more, for their bytes.
  RowCopy as_folded = RowCopy::ForRecent(0);
  const RecentPlace recent;
  for (const RecentColumnRow& row : slice.columns) {
    usage.Subtract({trial_id, received_day, row.place.keep_class,
                    groups_.GroupOf(trial_id, row.column.series_no)},
                   {.row_count = 1,
                    .sample_count = row.column.sample_count,
                    .byte_count = as_folded.AddColumn(row.place, &recent, row.column)});
  }
  if (!slice.is_last) return absl::OkStatus();
  STEPWELL_RETURN_IF_ERROR(work_->rollups.DropGrids(connection, groups_, usage));
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult ticks_deleted,
      connection.ExecKept(sql::kDeleteRecentTicks,
                          {Value(trial_id), Value(writer_no), PgArray(tick_nos)}));
  for (const RecentTicksRow& row : work_->ticks) {
    if (row.ticks.columns.empty()) continue;
    usage.Subtract({trial_id, received_day, row.place.keep_class,
                    groups_.GroupOf(trial_id, row.ticks.columns.front().series_no)},
                   {.byte_count = as_folded.AddTicks(row.place, &recent, row.ticks)});
  }
  return ExpectCount(ticks_deleted.affected_count(), work_->ticks.size());
}

}  // namespace stepwell
