#include "storage/pg_bulk_writer.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/failpoint.h"
#include "base/status_macros.h"
#include "storage/pg_caps_read.h"

namespace stepwell {
namespace {

// Narrow rows that a work takes at most; a merge, which goes in slices, joins what this leaves.
constexpr std::size_t kJoinedRowsMax = 20'000;
// Pieces of COPY, more or less: the rows of a work are never parted. How many those of ticks far apart may be, FoldSpread
// bounds.
constexpr std::size_t kSentBytes = 4 << 20;

std::vector<SeriesNo> SeriesOf(const BulkStretch& bulk) {
  std::set<SeriesNo> series;
  for (const MergedStretch& stretch : bulk.stretches) {
    for (const EncodedColumn& column : stretch.ticks.columns) series.insert(column.series_no);
  }
  return {series.begin(), series.end()};
}

// Their grids alone: what is joined is decided by them.
std::vector<StretchRollups> GridsOf(const BulkStretch& bulk) {
  std::vector<StretchRollups> grids;
  for (const MergedStretch& stretch : bulk.stretches) {
    StretchRollups& of_stretch = grids.emplace_back();
    for (std::size_t i = 0; i < of_stretch.size(); ++i) {
      const Rollup& rollup = stretch.rollups[i];
      of_stretch[i] = {.grid = rollup.grid,
                       .first_time_us = rollup.first_time_us,
                       .last_time_us = rollup.last_time_us,
                       .series = {}};
    }
  }
  return grids;
}

// Those of the work, and those that only narrow rollups have.
std::vector<std::int32_t> NumbersOf(const std::vector<SeriesNo>& series,
                                    const std::vector<SeriesNo>& narrow) {
  std::set<std::int32_t> numbers;
  for (const SeriesNo series_no : series) numbers.insert(Value(series_no));
  for (const SeriesNo series_no : narrow) numbers.insert(Value(series_no));
  return {numbers.begin(), numbers.end()};
}

}  // namespace

absl::StatusOr<KeepPlan> PgBulkWriter::Prepare(PgConnection& connection, TrialId trial_id,
                                               const std::vector<BulkWork>& works) {
  STEPWELL_ASSIGN_OR_RETURN(KeepPlan plan, ReadKeepPlan(connection, trial_id));
  for (const BulkWork& work : works) {
    for (const KeepClass& each : plan.used()) {
      STEPWELL_RETURN_IF_ERROR(leaves_.Ensure(connection, each.keep_class, work.bulk.received_day));
    }
  }
  return plan;
}

absl::Status PgBulkWriter::Write(PgConnection& connection, TrialId trial_id, const KeepPlan& plan,
                                 const std::vector<BulkWork>& works, std::int32_t first_open_day,
                                 UsageLedger& usage) {
  STEPWELL_ASSIGN_OR_RETURN(const bool holds, HoldKeepPlan(connection, plan));
  if (!holds) return absl::UnavailableError("caps changed meanwhile");
  STEPWELL_ASSIGN_OR_RETURN(const Looks looks, LookAround(connection, trial_id, works));
  std::vector<Laid> all;
  for (const BulkWork& work : works) {
    STEPWELL_ASSIGN_OR_RETURN(all.emplace_back(),
                              Lay(connection, trial_id, plan, work, first_open_day, looks, usage));
  }
  for (Laid& laid : all) STEPWELL_RETURN_IF_ERROR(laid.rollups.HoldLines(connection));
  MergeCopy copy(groups_, usage);
  for (Laid& laid : all) {
    AddTo(copy, trial_id, laid);
    if (copy.bytes() > kSentBytes) STEPWELL_RETURN_IF_ERROR(copy.Send(connection));
  }
  STEPWELL_RETURN_IF_ERROR(copy.Send(connection));
  STEPWELL_FAILPOINT("bulk_before_commit");
  return absl::OkStatus();
}

void PgBulkWriter::Forget() {
  leaves_.Clear();
  rollup_ring_.Forget();
}

// One work alone reads what it needs as quickly.
absl::StatusOr<PgBulkWriter::Looks> PgBulkWriter::LookAround(PgConnection& connection,
                                                             TrialId trial_id,
                                                             const std::vector<BulkWork>& works) {
  std::map<std::int32_t, std::vector<WriterNo>> writers;
  for (const BulkWork& work : works) writers[work.bulk.received_day].push_back(work.writer_no);
  Looks looks;
  for (const auto& [received_day, writer_nos] : writers) {
    if (writer_nos.size() < 2) continue;
    STEPWELL_ASSIGN_OR_RETURN(PgNarrowLook look,
                              PgNarrowLook::Take(connection, trial_id, received_day, writer_nos));
    looks.emplace(received_day, std::move(look));
  }
  return looks;
}

absl::StatusOr<PgBulkWriter::Laid> PgBulkWriter::Lay(PgConnection& connection, TrialId trial_id,
                                                     const KeepPlan& plan, const BulkWork& work,
                                                     std::int32_t first_open_day,
                                                     const Looks& looks, UsageLedger& usage) {
  const std::int32_t received_day = work.bulk.received_day;
  const std::vector<SeriesNo> series = SeriesOf(work.bulk);
  std::vector<const std::string*> names;
  for (const SeriesNo series_no : series) names.push_back(&groups_.GroupOf(trial_id, series_no));
  Laid laid{.work = &work, .classes = MergeClasses(plan, series, names), .rollups = {}};
  using Joiner = PgRollupJoiner;
  const RowPlace place{
      .trial_id = trial_id, .writer_no = work.writer_no, .received_day = received_day};
  const std::vector<StretchRollups> grids = GridsOf(work.bulk);
  const auto look = looks.find(received_day);
  Joiner::Options options{
      .day = received_day < first_open_day ? Joiner::Day::kIsOver : Joiner::Day::kGoesOn,
      .look = look == looks.end() ? nullptr : &look->second};
  STEPWELL_ASSIGN_OR_RETURN(laid.rollups,
                            Joiner::Plan(connection, place, laid.classes, grids, options));
  const std::size_t joined_series = std::max(series.size(), laid.rollups.narrow_series().size());
  if (laid.rollups.narrow_count() * joined_series > kJoinedRowsMax) {
    options.narrow_rows = Joiner::NarrowRows::kLeave;
    STEPWELL_ASSIGN_OR_RETURN(laid.rollups,
                              Joiner::Plan(connection, place, laid.classes, grids, options));
  }
  for (const auto& [keep_class, series_nos] : laid.classes.by_class()) {
    rollup_ring_.NoteWritten({keep_class, received_day});
  }
  const std::vector<SeriesNo>& narrow = laid.rollups.narrow_series();
  if (!narrow.empty()) {
    STEPWELL_RETURN_IF_ERROR(groups_.Prepare(connection, {{trial_id, narrow.back()}}));
  }
  STEPWELL_RETURN_IF_ERROR(
      laid.rollups.TakeRows(connection, NumbersOf(series, narrow), groups_, usage));
  // All of their series at once, so that the next work, which may have some of them, finds none of them.
  STEPWELL_RETURN_IF_ERROR(laid.rollups.DropGrids(connection, groups_, usage));
  return laid;
}

void PgBulkWriter::AddTo(MergeCopy& copy, TrialId trial_id, Laid& laid) {
  const BulkWork& work = *laid.work;
  RowPlace place{
      .trial_id = trial_id, .writer_no = work.writer_no, .received_day = work.bulk.received_day};
  for (std::size_t i = 0; i < work.bulk.stretches.size(); ++i) {
    place.tick_no = work.tick_nos[i];
    const EncodedTicks& ticks = work.bulk.stretches[i].ticks;
    copy.Add(place, i, ticks, laid.classes);
    for (const EncodedColumn& column : ticks.columns) {
      growth_.NoteRows({laid.classes.ClassOf(column.series_no), place.received_day}, 1);
    }
  }
  laid.rollups.CopyInto(work.bulk.stretches, work.tick_nos, laid.classes, copy);
}

}  // namespace stepwell
