#include "storage/pg_merger.h"

#include <algorithm>
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
#include "storage/pg_fold_sql.h"
#include "storage/pg_folder.h"
#include "storage/pg_owner.h"
#include "storage/pg_row_read.h"
#include "storage/stretch.h"

namespace stepwell {
namespace {

constexpr std::int32_t kPickedMax = 1000;
constexpr std::int64_t kSlowAgeFactor = 24;
constexpr std::size_t kDamagedMax = 10'000;

std::vector<std::int64_t> TickNosOf(const std::vector<RecentTicksRow>& ticks) {
  std::vector<std::int64_t> numbers;
  for (const RecentTicksRow& row : ticks) numbers.push_back(row.place.tick_no);
  return numbers;
}

std::vector<std::int32_t> NumbersOf(const std::vector<SeriesNo>& series) {
  std::vector<std::int32_t> numbers;
  for (const SeriesNo series_no : series) numbers.push_back(Value(series_no));
  return numbers;
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
}

absl::StatusOr<MergeResult> PgMerger::Merge(std::int64_t owner_epoch, const MergeLimits& limits) {
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link_.Get());
  const bool picks_now = !work_.has_value() && picked_.empty();
  if (picks_now) STEPWELL_RETURN_IF_ERROR(Annotate(Pick(*connection, limits), "pick what is ripe"));
  MergeResult result;
  if (!work_.has_value() && picked_.empty()) return result;
  const StretchKey first = work_.has_value() ? work_->key : picked_.front();
  const absl::Status merged = Run(*connection, owner_epoch, limits, result);
  if (!merged.ok()) {
    const StretchKey at = work_.has_value() ? work_->key : first;
    Forget();
    link_.Drop();
    if (!absl::IsDataLoss(merged)) return Annotate(merged, "merge");
    if (damaged_.size() < kDamagedMax) damaged_.insert(at);
    log::Error("recent_rows_damaged", {{"trial", Value(std::get<TrialId>(at))},
                                       {"writer", Value(std::get<WriterNo>(at))},
                                       {"reason", merged.message()}});
    return MergeResult{.more = true};
  }
  // What an earlier call had picked may not be all that is ripe now.
  result.more = work_.has_value() || !picked_.empty() || !picks_now;
  return result;
}

absl::Status PgMerger::Pick(PgConnection& connection, const MergeLimits& limits) {
  const std::int64_t now_us = limits.now_us != 0 ? limits.now_us : absl::ToUnixMicros(absl::Now());
  const std::int64_t ripe_us = now_us - limits.ripe_age_us;
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(
          sql::kPickRipe,
          {Value(limits.fold_no_max), std::int64_t{limits.ripe_tick_count}, ripe_us,
           static_cast<std::int64_t>(kSlowTicksPerHour),
           now_us - kSlowAgeFactor * limits.ripe_age_us, PgDate{DayOf(ripe_us)}, kPickedMax}));
  for (int row = 0; row < rows.row_count(); ++row) {
    const StretchKey key = {TrialId{rows.Int64(row, 0)}, WriterNo{rows.Int32(row, 1)},
                            rows.Int32(row, 2), rows.DateDays(row, 3)};
    if (!damaged_.contains(key)) picked_.push_back(key);
  }
  return absl::OkStatus();
}

absl::Status PgMerger::Run(PgConnection& connection, std::int64_t owner_epoch,
                           const MergeLimits& limits, MergeResult& result) {
  // One trial per transaction: its owner is checked once, and on a sharded database it stays local.
  const StretchKey& next = work_.has_value() ? work_->key : picked_.front();
  const TrialId trial_id = std::get<TrialId>(next);
  const std::int32_t received_day = std::get<3>(next);
  STEPWELL_RETURN_IF_ERROR(leaves_.Ensure(connection, /*keep_class=*/0, received_day));
  std::int64_t merge_xid = 0;
  const absl::Status merged = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckOwner(connection, {Value(trial_id)}, owner_epoch));
    while (result.recent_rows_taken < limits.rows_max) {
      if (!work_.has_value()) {
        if (picked_.empty() || std::get<TrialId>(picked_.front()) != trial_id ||
            std::get<3>(picked_.front()) != received_day) {
          break;
        }
        STEPWELL_ASSIGN_OR_RETURN(work_, Begin(connection, picked_.front(), limits.fold_no_max));
        picked_.pop_front();
      }
      const auto rows_left = static_cast<std::size_t>(limits.rows_max - result.recent_rows_taken);
      STEPWELL_RETURN_IF_ERROR(MergeSlice(connection, rows_left, result));
      if (work_->series_done == work_->series.size()) work_.reset();
    }
    STEPWELL_ASSIGN_OR_RETURN(const PgResult xid, connection.Exec(sql::kReadCurrentXid));
    merge_xid = xid.Int64(0, 0);
    return failpoint::Check("merge_before_commit");
  });
  STEPWELL_RETURN_IF_ERROR(merged);
  STEPWELL_FAILPOINT("merge_after_commit");
  for (int i = 0; i < RecentRing::kSegmentCount; ++i) {
    ring_.segment(i).last_merge_xid = static_cast<std::uint64_t>(merge_xid);
  }
  return absl::OkStatus();
}

absl::StatusOr<PgMerger::Work> PgMerger::Begin(PgConnection& connection, const StretchKey& key,
                                               FoldNo fold_no_max) {
  static const std::string statement =
      absl::StrCat("select segment, fold_no, received_time_us, series_nos, ", kTicksColumnList,
                   sql::kFromRecentTicks);
  const auto& [trial_id, writer_no, tick_group, received_day] = key;
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(statement.c_str(), {Value(trial_id), Value(writer_no), tick_group,
                                          PgDate{received_day}, Value(fold_no_max)}));
  Work work;
  work.key = key;
  for (int row = 0; row < rows.row_count(); ++row) {
    work.ticks.push_back(ReadRecentTicks(rows, row));
  }
  work.series = SeriesOn(work.ticks);
  if (!work.series.empty()) {
    STEPWELL_RETURN_IF_ERROR(groups_.Prepare(connection, {{trial_id, work.series.back()}}));
  }
  return work;
}

absl::Status PgMerger::MergeSlice(PgConnection& connection, std::size_t rows_max,
                                  MergeResult& result) {
  STEPWELL_ASSIGN_OR_RETURN(const Slice slice, ReadSlice(connection, rows_max));
  UsageLedger usage;
  STEPWELL_RETURN_IF_ERROR(CopySlice(connection, slice, usage, result));
  STEPWELL_RETURN_IF_ERROR(DeleteSlice(connection, slice, usage));
  STEPWELL_RETURN_IF_ERROR(WriteUsage(connection, usage));
  work_->series_done += slice.series.size();
  result.recent_rows_taken += static_cast<std::int64_t>(slice.columns.size()) + 1;
  return absl::OkStatus();
}

absl::StatusOr<PgMerger::Slice> PgMerger::ReadSlice(PgConnection& connection,
                                                    std::size_t rows_max) {
  static const std::string statement =
      absl::StrCat("select ", kMetricsColumnList, sql::kFromRecent);
  Slice slice;
  const std::size_t rows_per_series = std::max<std::size_t>(1, work_->ticks.size());
  const std::size_t series_count = std::min(work_->series.size() - work_->series_done,
                                            std::max<std::size_t>(1, rows_max / rows_per_series));
  const auto begin = work_->series.begin() + static_cast<std::ptrdiff_t>(work_->series_done);
  slice.series.assign(begin, begin + static_cast<std::ptrdiff_t>(series_count));
  slice.is_first = work_->series_done == 0;
  slice.is_last = work_->series_done + series_count == work_->series.size();
  const std::vector<std::int32_t> series_nos = NumbersOf(slice.series);
  const std::vector<std::int64_t> tick_nos = TickNosOf(work_->ticks);
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.Exec(statement.c_str(), {Value(std::get<TrialId>(work_->key)), PgArray(series_nos),
                                          PgArray(tick_nos)}));
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
  RowPlace place{.trial_id = trial_id, .writer_no = writer_no, .received_day = received_day};
  RowCopy rows = RowCopy::ForLeaf(place.keep_class, received_day);
  RollupCopy rollups(place.keep_class, received_day);
  for (std::size_t i = 0; i < slice.merged.size(); ++i) {
    place.tick_no = work_->tick_nos[i];
    AddRows(place, slice.merged[i].ticks, slice.is_first, rows, usage);
    for (const EncodedRollup& rollup : slice.merged[i].rollups) {
      AddRollup(place, rollup, slice.is_first, rollups, usage);
    }
    result.metrics_rows_made += static_cast<std::int64_t>(slice.merged[i].ticks.columns.size());
  }
  STEPWELL_RETURN_IF_ERROR(rows.Send(connection));
  return rollups.Send(connection);
}

void PgMerger::AddRows(const RowPlace& place, const EncodedTicks& ticks, bool with_ticks,
                       RowCopy& copy, UsageLedger& usage) {
  UsageKey key = {place.trial_id, place.received_day, place.keep_class, {}};
  if (with_ticks) {
    key.metric_group = groups_.GroupOf(place.trial_id, work_->series.front());
    usage.Add(key, {.byte_count = copy.AddTicks(place, nullptr, ticks)});
  }
  for (const EncodedColumn& column : ticks.columns) {
    key.metric_group = groups_.GroupOf(place.trial_id, column.series_no);
    usage.Add(key, {.row_count = 1,
                    .sample_count = column.sample_count,
                    .byte_count = copy.AddColumn(place, nullptr, column),
                    .first_time_us = column.first_time_us,
                    .last_time_us = column.last_time_us});
  }
}

void PgMerger::AddRollup(const RowPlace& place, const EncodedRollup& rollup, bool with_ticks,
                         RollupCopy& copy, UsageLedger& usage) {
  UsageKey key = {place.trial_id, place.received_day, place.keep_class, {}};
  if (with_ticks) {
    key.metric_group = groups_.GroupOf(place.trial_id, work_->series.front());
    usage.Add(key, {.rollup_byte_count = copy.AddTicks(place, rollup)});
  }
  for (const EncodedRollupColumn& column : rollup.columns) {
    key.metric_group = groups_.GroupOf(place.trial_id, column.series_no);
    usage.Add(key, {.rollup_byte_count = copy.AddColumn(place, rollup.step_seconds, column)});
  }
}

absl::Status PgMerger::DeleteSlice(PgConnection& connection, const Slice& slice,
                                   UsageLedger& usage) {
  const auto& [trial_id, writer_no, tick_group, received_day] = work_->key;
  const std::vector<std::int64_t> tick_nos = TickNosOf(work_->ticks);
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult deleted,
      connection.Exec(sql::kDeleteRecent,
                      {Value(trial_id), PgArray(NumbersOf(slice.series)), PgArray(tick_nos)}));
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
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult ticks_deleted,
      connection.Exec(sql::kDeleteRecentTicks,
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
