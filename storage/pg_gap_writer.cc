#include "storage/pg_gap_writer.h"

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "base/status_macros.h"
#include "storage/gap_ledger.h"
#include "storage/pg_array.h"
#include "storage/pg_sql.h"

namespace stepwell {
namespace {

struct StoredGap {
  TrialId trial_id{};
  std::int64_t gap_no = 0;
  Gap gap;
};

// The columns that kReadGapTails and kCountGaps begin with.
StoredGap ReadRow(const PgResult& result, int row) {
  return {.trial_id = TrialId{result.Int64(row, 0)},
          .gap_no = result.Int64(row, 1),
          .gap = {.writer_no = WriterNo{result.Int32(row, 2)},
                  .cause = static_cast<GapCause>(result.Int32(row, 3)),
                  .metric_group = std::string(result.Text(row, 4)),
                  .sample_count = result.Int64(row, 5),
                  .first_time_us = result.Int64(row, 6),
                  .last_time_us = result.Int64(row, 7),
                  .first_sequence = static_cast<std::uint64_t>(result.Int64(row, 8)),
                  .last_sequence = static_cast<std::uint64_t>(result.Int64(row, 9)),
                  .reason = std::string(result.Text(row, 10))}};
}

// The columns of gaps, as vectors.
struct GapVectors {
  std::vector<std::int64_t> trials, sample_counts, first_times, last_times, firsts, lasts, gap_nos;
  std::vector<std::int32_t> writers;
  std::vector<std::int16_t> causes;
  std::vector<std::string> groups, reasons;

  void Add(const GapChange& change) {
    trials.push_back(Value(change.trial_id));
    writers.push_back(Value(change.gap.writer_no));
    causes.push_back(static_cast<std::int16_t>(change.gap.cause));
    groups.push_back(change.gap.metric_group);
    sample_counts.push_back(change.gap.sample_count);
    first_times.push_back(change.gap.first_time_us);
    last_times.push_back(change.gap.last_time_us);
    firsts.push_back(static_cast<std::int64_t>(change.gap.first_sequence));
    lasts.push_back(static_cast<std::int64_t>(change.gap.last_sequence));
    reasons.push_back(change.gap.reason);
    gap_nos.push_back(change.gap_no);
  }
  std::vector<PgParam> Params() const {
    return {PgArray(trials),        PgArray(writers),     PgArray(causes),     PgArray(groups),
            PgArray(sample_counts), PgArray(first_times), PgArray(last_times), PgArray(firsts),
            PgArray(lasts),         PgArray(reasons)};
  }
};

// What is stored and may go on: the newest row of each key, and of each writer and cause.
absl::StatusOr<std::map<std::int64_t, StoredGap>> ReadTails(PgConnection& connection,
                                                            const std::vector<TrialGap>& gaps,
                                                            GapLedger& ledger) {
  std::set<std::tuple<TrialId, WriterNo, GapCause, std::string, std::string>> keys;
  std::set<std::tuple<TrialId, WriterNo, GapCause>> counted;
  for (const auto& [trial_id, gap] : gaps) {
    keys.insert({trial_id, gap.writer_no, gap.cause, gap.metric_group, gap.reason});
    counted.insert({trial_id, gap.writer_no, gap.cause});
  }
  GapVectors tails, counts;
  for (const auto& [trial_id, writer_no, cause, group, reason] : keys) {
    tails.Add(
        {.trial_id = trial_id,
         .gap = {.writer_no = writer_no, .cause = cause, .metric_group = group, .reason = reason}});
  }
  for (const auto& [trial_id, writer_no, cause] : counted) {
    counts.Add({.trial_id = trial_id,
                .gap = {.writer_no = writer_no, .cause = cause, .metric_group = {}, .reason = {}}});
  }
  std::map<std::int64_t, StoredGap> stored;
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult tail_rows,
      connection.Exec(sql::kReadGapTails,
                      {PgArray(counts.trials), PgArray(counts.writers), PgArray(counts.causes),
                       PgArray(tails.trials), PgArray(tails.writers), PgArray(tails.causes),
                       PgArray(tails.groups), PgArray(tails.reasons)}));
  for (int row = 0; row < tail_rows.row_count(); ++row) {
    StoredGap gap = ReadRow(tail_rows, row);
    stored.emplace(gap.gap_no, std::move(gap));
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult count_rows,
      connection.Exec(sql::kCountGaps,
                      {PgArray(counts.trials), PgArray(counts.writers), PgArray(counts.causes)}));
  for (int row = 0; row < count_rows.row_count(); ++row) {
    StoredGap gap = ReadRow(count_rows, row);
    ledger.SetRowCount(gap.trial_id, gap.gap.writer_no, gap.gap.cause, count_rows.Int64(row, 11));
    stored.emplace(gap.gap_no, std::move(gap));
  }
  return stored;
}

}  // namespace

absl::Status WriteGaps(PgConnection& connection, const std::vector<TrialGap>& gaps) {
  if (gaps.empty()) return absl::OkStatus();
  GapLedger ledger;
  STEPWELL_ASSIGN_OR_RETURN(const auto stored, ReadTails(connection, gaps, ledger));
  for (const auto& [gap_no, row] : stored) ledger.AddStored(row.trial_id, gap_no, row.gap);
  for (const auto& [trial_id, gap] : gaps) ledger.Note(trial_id, gap);
  GapVectors inserted, extended;
  for (const GapChange& change : ledger.TakeChanges()) {
    (change.gap_no == 0 ? inserted : extended).Add(change);
  }
  if (!inserted.trials.empty()) {
    STEPWELL_RETURN_IF_ERROR(connection.Exec(sql::kInsertGaps, inserted.Params()).status());
  }
  if (!extended.trials.empty()) {
    std::vector<PgParam> params = extended.Params();
    params.push_back(PgArray(extended.gap_nos));
    STEPWELL_RETURN_IF_ERROR(connection.Exec(sql::kExtendGaps, params).status());
  }
  return absl::OkStatus();
}

}  // namespace stepwell
