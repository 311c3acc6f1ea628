#include "storage/pg_folder.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/fold_split.h"
#include "storage/pg_array.h"
#include "storage/pg_error.h"
#include "storage/pg_fold_sql.h"
#include "storage/pg_gap_writer.h"
#include "storage/pg_owner.h"
#include "storage/pg_progress.h"
#include "storage/pg_sql.h"

namespace stepwell {
namespace {

// Pieces of COPY; together they are bounded by what the caller lets into one fold.
constexpr std::size_t kCopyBytes = 4 << 20;
constexpr absl::Duration kReadBackTimeout = absl::Seconds(15);
constexpr absl::Duration kBulkRest = absl::Seconds(30);
constexpr std::size_t kBulkRestsMax = 1000;

using WriterKey = std::pair<TrialId, WriterNo>;

absl::Status CheckFolds(const std::vector<WriterFold>& folds) {
  std::set<WriterKey> seen;
  for (const WriterFold& fold : folds) {
    if (fold.to_sequence < fold.from_sequence_exclusive ||
        !seen.insert({fold.trial_id, fold.writer_no}).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("fold of trial ", Value(fold.trial_id), " writer ", Value(fold.writer_no),
                       ": twice in one fold, or it goes back from ", fold.from_sequence_exclusive,
                       " to ", fold.to_sequence));
    }
  }
  return absl::OkStatus();
}

std::vector<std::int64_t> TrialsOf(const std::vector<WriterFold>& folds) {
  std::set<std::int64_t> trials;
  for (const WriterFold& fold : folds) trials.insert(Value(fold.trial_id));
  return {trials.begin(), trials.end()};
}

// The data itself is at fault: it would be refused again and again.
bool IsRefused(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument;
}

std::vector<TrialGap> GapsOf(const std::vector<WriterFold>& folds) {
  std::vector<TrialGap> gaps;
  for (const WriterFold& fold : folds) {
    for (const Gap& gap : fold.gaps) {
      gaps.push_back({fold.trial_id, gap});
      gaps.back().gap.writer_no = fold.writer_no;
    }
  }
  return gaps;
}

bool HoldsNothing(const WriterFold& fold) { return fold.parts.empty() && fold.gaps.empty(); }

// Deleted trials among those that something is to be kept of.
std::vector<std::int64_t> ToEmpty(const std::vector<WriterFold>& folds,
                                  const std::vector<std::int64_t>& deleted) {
  std::set<std::int64_t> to_empty;
  for (const WriterFold& fold : folds) {
    const bool is_deleted =
        std::binary_search(deleted.begin(), deleted.end(), Value(fold.trial_id));
    if (is_deleted && !HoldsNothing(fold)) to_empty.insert(Value(fold.trial_id));
  }
  return {to_empty.begin(), to_empty.end()};
}

// Of deleted trials the mark moves, and nothing is kept.
std::vector<WriterFold> Emptied(std::vector<WriterFold> folds,
                                const std::vector<std::int64_t>& deleted) {
  for (WriterFold& fold : folds) {
    if (!std::binary_search(deleted.begin(), deleted.end(), Value(fold.trial_id))) continue;
    fold.parts.clear();
    fold.gaps.clear();
  }
  return folds;
}

absl::Status MoveFolded(PgConnection& connection, const std::vector<WriterFold>& folds) {
  std::vector<std::int64_t> trials, froms, tos;
  std::vector<std::int32_t> writers;
  for (const WriterFold& fold : folds) {
    trials.push_back(Value(fold.trial_id));
    writers.push_back(Value(fold.writer_no));
    froms.push_back(static_cast<std::int64_t>(fold.from_sequence_exclusive));
    tos.push_back(static_cast<std::int64_t>(fold.to_sequence));
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult moved,
      connection.ExecKept(sql::kMoveFolded,
                          {PgArray(trials), PgArray(writers), PgArray(froms), PgArray(tos)}));
  const auto asked = static_cast<std::int64_t>(folds.size());
  if (moved.affected_count() == asked) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(asked - moved.affected_count(), " of ", asked,
                   " writers are not folded up to where this fold begins"));
}

}  // namespace

absl::StatusOr<std::vector<std::int64_t>> NextFoldNumbers(PgConnection& connection,
                                                          std::int64_t count) {
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection.ExecKept(sql::kNextFoldNos, {static_cast<std::int32_t>(count)}));
  std::vector<std::int64_t> numbers;
  for (int row = 0; row < rows.row_count(); ++row) numbers.push_back(rows.Int64(row, 0));
  return numbers;
}

struct PgFolder::Draft {
  Draft(const std::vector<std::int64_t>& fold_numbers, std::int16_t ring_segment)
      : numbers(fold_numbers), segment(ring_segment) {
    result.fold_no = FoldNo{numbers.back()};
  }
  void Add(const WriterFold& fold, const PlannedTicks& planned, const SeriesGroups& groups);
  void Add(const WriterFold& fold, BulkStretch bulk);
  std::int64_t NextTickNo() {
    const auto number = static_cast<std::size_t>(ticks_count / kTicksPerFoldNo);
    return numbers[number] * kTicksPerFoldNo + ticks_count++ % kTicksPerFoldNo;
  }

  const std::vector<std::int64_t> numbers;
  const std::int16_t segment;
  FoldResult result;
  std::vector<RowCopy> copies;
  UsageLedger usage;
  // Straight into leaves, all of one trial; by this plan.
  std::vector<BulkWork> works;
  KeepPlan keep_plan;
  std::int32_t first_open_day = 0;
  std::int64_t ticks_count = 0;
  std::int64_t bytes = 0;  // of recent
};

void PgFolder::Draft::Add(const WriterFold& fold, BulkStretch bulk) {
  BulkWork& work = works.emplace_back();
  work.writer_no = fold.writer_no;
  for (const MergedStretch& stretch : bulk.stretches) {
    work.tick_nos.push_back(NextTickNo());
    for (const EncodedColumn& column : stretch.ticks.columns) {
      result.row_count += 1;
      result.sample_count += column.sample_count;
    }
  }
  work.bulk = std::move(bulk);
}

void PgFolder::Draft::Add(const WriterFold& fold, const PlannedTicks& planned,
                          const SeriesGroups& groups) {
  if (copies.empty() || copies.back().bytes() > kCopyBytes) {
    copies.push_back(RowCopy::ForRecent(segment));
  }
  RowCopy& copy = copies.back();
  const RowPlace place = {.trial_id = fold.trial_id,
                          .writer_no = fold.writer_no,
                          .tick_no = NextTickNo(),
                          .received_day = planned.received_day};
  const RecentPlace recent = {
      .segment = segment, .fold_no = result.fold_no, .received_time_us = planned.received_time_us};
  std::int64_t ticks_bytes = copy.AddTicks(place, &recent, planned.ticks);
  for (const EncodedColumn& column : planned.ticks.columns) {
    const std::int64_t row_bytes =
        std::exchange(ticks_bytes, 0) + copy.AddColumn(place, &recent, column);
    usage.Add({.trial_id = place.trial_id,
               .received_day = place.received_day,
               .keep_class = place.keep_class,
               .metric_group = groups.GroupOf(place.trial_id, column.series_no)},
              {.row_count = 1,
               .sample_count = column.sample_count,
               .byte_count = row_bytes,
               .first_time_us = column.first_time_us,
               .last_time_us = column.last_time_us});
    bytes += row_bytes;
    result.row_count += 1;
    result.sample_count += column.sample_count;
  }
}

absl::StatusOr<FoldResult> PgFolder::Fold(std::int64_t owner_epoch,
                                          const std::vector<WriterFold>& folds) {
  STEPWELL_RETURN_IF_ERROR(CheckFolds(folds));
  FoldResult total;
  STEPWELL_RETURN_IF_ERROR(FoldOrHalve(owner_epoch, folds, total));
  return total;
}

bool PgFolder::Rests(TrialId trial_id) {
  const auto rest = rest_until_.find(trial_id);
  if (rest == rest_until_.end()) return false;
  if (!rest->second.HasPassed()) return true;
  rest_until_.erase(rest);
  return false;
}

absl::StatusOr<std::optional<FoldResult>> PgFolder::FoldBulk(std::int64_t owner_epoch,
                                                             const std::vector<WriterFold>& folds,
                                                             std::int32_t first_open_day) {
  STEPWELL_RETURN_IF_ERROR(CheckFolds(folds));
  if (TrialsOf(folds).size() != 1) {
    return absl::InvalidArgumentError("a fold into leaves is of one trial");
  }
  const TrialId trial_id = folds.front().trial_id;
  if (Rests(trial_id)) return std::nullopt;
  auto folded = FoldOnce(owner_epoch, folds, {bulk_ticks_, first_open_day});
  if (folded.ok()) {
    STEPWELL_FAILPOINT("bulk_after_commit");
    return *std::move(folded);
  }
  bulk_.Forget();
  const absl::Status& status = folded.status();
  // What we hold and what the database says differ; a table that is not there is of the same code.
  const bool differs = absl::IsFailedPrecondition(status) && SqlState(status).empty();
  if (IsCommitUnknown(status) || absl::IsAborted(status) || differs) return status;
  // Nothing of it is stored. Whatever a leaf, its caps or its rollups have, recent takes the rows; a merge, which
  // can wait, comes across the same again.
  log::Warning("bulk_fold_refused", {{"trial", Value(trial_id)}, {"status", status.ToString()}});
  if (rest_until_.size() >= kBulkRestsMax) rest_until_.clear();
  rest_until_[trial_id] = SteadyTime::Now() + kBulkRest;
  return std::nullopt;
}

absl::Status PgFolder::FoldOrHalve(std::int64_t owner_epoch, const std::vector<WriterFold>& folds,
                                   FoldResult& total) {
  const auto folded = FoldOnce(owner_epoch, folds, Bulk());
  if (folded.ok()) {
    total.fold_no = std::max(total.fold_no, folded->fold_no);
    total.row_count += folded->row_count;
    total.sample_count += folded->sample_count;
    return absl::OkStatus();
  }
  if (!IsRefused(folded.status()) || folds.empty()) return folded.status();
  const auto halves = HalveFolds(folds);
  if (!halves) return FoldGivenUp(owner_epoch, folds[0], folded.status(), total);
  STEPWELL_RETURN_IF_ERROR(FoldOrHalve(owner_epoch, halves->first, total));
  return FoldOrHalve(owner_epoch, halves->second, total);
}

absl::Status PgFolder::FoldGivenUp(std::int64_t owner_epoch, const WriterFold& fold,
                                   const absl::Status& why, FoldResult& total) {
  const WriterFold given_up = GiveUp(fold);
  const Gap& gap = given_up.gaps.back();
  STEPWELL_ASSIGN_OR_RETURN(const FoldResult folded, FoldOnce(owner_epoch, {given_up}, Bulk()));
  total.fold_no = std::max(total.fold_no, folded.fold_no);
  total.refused_sample_count += gap.sample_count;
  log::Error("fold_refused_by_database", {{"trial", Value(fold.trial_id)},
                                          {"writer_no", Value(fold.writer_no)},
                                          {"first_sequence", gap.first_sequence},
                                          {"last_sequence", gap.last_sequence},
                                          {"samples_given_up", gap.sample_count},
                                          {"status", why.ToString()}});
  return absl::OkStatus();
}

absl::StatusOr<FoldResult> PgFolder::FoldOnce(std::int64_t owner_epoch,
                                              const std::vector<WriterFold>& folds, Bulk bulk) {
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link_.Get());
  auto draft = Lay(*connection, folds, bulk);
  if (!draft.ok()) {
    // A leaf that was to be attached: nothing of the fold.
    return Annotate(ComeAgainIfUnknown(draft.status()), "fold");
  }
  std::vector<std::int64_t> deleted;
  const absl::Status written = connection->InTransaction([&]() -> absl::Status {
    STEPWELL_ASSIGN_OR_RETURN(deleted, Write(*connection, owner_epoch, folds, *draft));
    return absl::OkStatus();
  });
  if (written.ok() && !deleted.empty()) return FoldOnce(owner_epoch, Emptied(folds, deleted), bulk);
  if (IsCommitUnknown(written)) return ReadBack(folds, *draft);
  if (!written.ok()) {
    groups_.Clear();
    if (!IsRefused(written)) link_.Drop();  // else it was rolled back, and answers
    return Annotate(written, "fold");
  }
  STEPWELL_FAILPOINT("fold_after_commit");
  NoteWritten(*draft);
  return draft->result;
}

absl::StatusOr<PgFolder::Draft> PgFolder::Lay(PgConnection& connection,
                                              const std::vector<WriterFold>& folds, Bulk bulk) {
  std::vector<FoldPlan> plans;
  std::map<TrialId, SeriesNo> highest;
  std::int64_t ticks_count = 0;
  for (const WriterFold& fold : folds) {
    auto plan = PlanFold(fold, bulk.ticks);
    // Tables that do not fit each other would fail every fold, as rows that are refused would.
    if (!plan.ok()) return absl::InvalidArgumentError(plan.status().message());
    SeriesNo& top = highest[fold.trial_id];
    const auto note = [&](const EncodedTicks& ticks) {
      ++ticks_count;
      for (const EncodedColumn& column : ticks.columns) top = std::max(top, column.series_no);
    };
    for (const PlannedTicks& planned : plan->recent) note(planned.ticks);
    for (const BulkStretch& each : plan->bulk) {
      for (const MergedStretch& stretch : each.stretches) note(stretch.ticks);
    }
    plans.push_back(*std::move(plan));
  }
  STEPWELL_RETURN_IF_ERROR(groups_.Prepare(connection, highest));
  const std::int64_t numbers_needed =
      std::max<std::int64_t>(1, (ticks_count + kTicksPerFoldNo - 1) / kTicksPerFoldNo);
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> numbers,
                            NextFoldNumbers(connection, numbers_needed));

  Draft draft(numbers, static_cast<std::int16_t>(ring_.current()));
  for (std::size_t i = 0; i < folds.size(); ++i) {
    for (const PlannedTicks& planned : plans[i].recent) draft.Add(folds[i], planned, groups_);
    for (BulkStretch& each : plans[i].bulk) draft.Add(folds[i], std::move(each));
    plans[i] = FoldPlan();
  }
  if (!draft.works.empty()) {
    draft.first_open_day = bulk.first_open_day;
    STEPWELL_ASSIGN_OR_RETURN(draft.keep_plan,
                              bulk_.Prepare(connection, folds.front().trial_id, draft.works));
  }
  return draft;
}

absl::StatusOr<std::vector<std::int64_t>> PgFolder::Write(PgConnection& connection,
                                                          std::int64_t owner_epoch,
                                                          const std::vector<WriterFold>& folds,
                                                          Draft& draft) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> deleted,
                            CheckOwnerOfLiving(connection, TrialsOf(folds), owner_epoch));
  const std::vector<std::int64_t> to_empty = ToEmpty(folds, deleted);
  if (!to_empty.empty()) return to_empty;
  if (!draft.works.empty()) {
    STEPWELL_RETURN_IF_ERROR(bulk_.Write(connection, folds.front().trial_id, draft.keep_plan,
                                         draft.works, draft.first_open_day, draft.usage));
  }
  for (RowCopy& copy : draft.copies) STEPWELL_RETURN_IF_ERROR(copy.Send(connection));
  STEPWELL_RETURN_IF_ERROR(WriteUsage(connection, draft.usage));
  STEPWELL_RETURN_IF_ERROR(MoveFolded(connection, folds));
  STEPWELL_RETURN_IF_ERROR(WriteGaps(connection, GapsOf(folds)));
  STEPWELL_RETURN_IF_ERROR(failpoint::Check("fold_before_commit"));
  return to_empty;
}

absl::StatusOr<FoldResult> PgFolder::ReadBack(const std::vector<WriterFold>& folds,
                                              const Draft& draft) {
  std::vector<WriterKey> keys;
  for (const WriterFold& fold : folds) keys.emplace_back(fold.trial_id, fold.writer_no);
  const auto stored = ReadBackProgress(link_, keys, kReadBackTimeout);
  if (!stored.ok()) return Annotate(stored.status(), "fold");
  const bool folded = std::all_of(folds.begin(), folds.end(), [&](const WriterFold& fold) {
    const auto found = stored->find({fold.trial_id, fold.writer_no});
    return found != stored->end() && found->second.folded_sequence >= fold.to_sequence;
  });
  log::Info("fold_in_doubt_settled", {{"folded", folded}, {"writers", folds.size()}});
  if (!folded) return absl::UnavailableError("fold: COMMIT was lost and did not happen");
  NoteWritten(draft);
  return draft.result;
}

void PgFolder::NoteWritten(const Draft& draft) {
  if (draft.bytes > 0) ring_.NoteWritten(draft.bytes, absl::ToUnixMicros(absl::Now()));
}

}  // namespace stepwell
