#include "storage/pg_writer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/advance_rules.h"
#include "storage/journal_rows.h"
#include "storage/pg_array.h"
#include "storage/pg_gap_writer.h"
#include "storage/pg_journal.h"
#include "storage/pg_progress.h"
#include "storage/pg_sql.h"

namespace stepwell {
namespace {

using WriterKey = std::pair<TrialId, WriterNo>;

WriterKey KeyOf(const WriterAdvance& advance) { return {advance.trial_id, advance.writer_no}; }

std::int16_t StateAfter(const WriterAdvance& advance) {
  return static_cast<std::int16_t>(advance.closing.value_or(WriterState::kOpen));
}

// The vectors of kAdvanceWriters.
struct GuardVectors {
  std::vector<std::int64_t> trials, generations, firsts, lasts, crcs;
  std::vector<std::int32_t> writers;
  std::vector<std::int16_t> states;
};

}  // namespace

struct PgWriter::Group {
  explicit Group(const CommitGroupRequest& given) : request(given) {
    for (const WriterAdvance& advance : given.advances) sorted.push_back(&advance);
    std::sort(sorted.begin(), sorted.end(),
              [](const WriterAdvance* a, const WriterAdvance* b) { return KeyOf(*a) < KeyOf(*b); });
  }
  void Answer(const WriterAdvance& advance, AdvanceResult result) {
    results[KeyOf(advance)] = result;
  }
  bool Answered(const WriterAdvance& advance) const { return results.contains(KeyOf(advance)); }
  bool Accepted(const WriterAdvance& advance) const {
    const auto it = results.find(KeyOf(advance));
    return it != results.end() && it->second.outcome == AdvanceOutcome::kCommitted;
  }
  std::vector<const WriterAdvance*> AcceptedOnes() const {
    std::vector<const WriterAdvance*> accepted;
    for (const WriterAdvance* advance : sorted) {
      if (Accepted(*advance)) accepted.push_back(advance);
    }
    return accepted;
  }
  std::vector<AdvanceResult> ResultsInOrder() const {
    std::vector<AdvanceResult> ordered;
    for (const WriterAdvance& advance : request.advances) {
      ordered.push_back(results.at(KeyOf(advance)));
    }
    return ordered;
  }

  const CommitGroupRequest& request;
  std::vector<const WriterAdvance*> sorted;
  std::map<WriterKey, AdvanceResult> results;
  // Repeats that bring a Close.
  std::vector<const WriterAdvance*> closing_repeats;
};

PgWriter::PgWriter(Options options, std::shared_ptr<JournalRing> ring)
    : options_(std::move(options)), ring_(std::move(ring)), link_(options_.connection) {}

absl::StatusOr<std::vector<AdvanceResult>> PgWriter::Commit(const CommitGroupRequest& request) {
  STEPWELL_RETURN_IF_ERROR(CheckGroup(request));
  if (request.advances.empty()) return std::vector<AdvanceResult>();
  Group group(request);
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link_.Get());
  const absl::Status written = Write(*connection, group);
  if (written.ok()) return group.ResultsInOrder();
  if (IsCommitUnknown(written)) return ReadBack(group);
  if (!connection->Rollback().ok()) link_.Drop();
  return Annotate(written, "commit group");
}

absl::Status PgWriter::Pass(std::string_view point) {
  if (options_.at_point) options_.at_point(point, link_.backend_pid());
  return failpoint::Check(absl::string_view(point.data(), point.size()));
}

absl::Status PgWriter::Write(PgConnection& connection, Group& group) {
  STEPWELL_RETURN_IF_ERROR(Pass("commit_before_begin"));
  const JournalRing::Entry entry = ring_->Enter();
  STEPWELL_RETURN_IF_ERROR(connection.Begin());
  STEPWELL_RETURN_IF_ERROR(CheckOwner(connection, group));
  STEPWELL_RETURN_IF_ERROR(Advance(connection, group));
  STEPWELL_RETURN_IF_ERROR(Pass("commit_after_guard"));
  STEPWELL_RETURN_IF_ERROR(JudgeRefused(connection, group));
  STEPWELL_RETURN_IF_ERROR(CloseRepeats(connection, group));
  STEPWELL_RETURN_IF_ERROR(StoreGaps(connection, group));
  STEPWELL_RETURN_IF_ERROR(CopyJournal(connection, group, entry.segment()));
  STEPWELL_RETURN_IF_ERROR(Pass("commit_before_commit"));
  STEPWELL_RETURN_IF_ERROR(connection.Commit());
  // The commit is known: what fails from here on must not look like a failed commit.
  Pass("commit_after_commit").IgnoreError();
  return absl::OkStatus();
}

// A trial that is gone, archived or deleted fences its writers; one of another owner stops us.
absl::Status PgWriter::CheckOwner(PgConnection& connection, Group& group) {
  std::vector<std::int64_t> trials;
  for (const WriterAdvance* advance : group.sorted) {
    if (trials.empty() || trials.back() != Value(advance->trial_id)) {
      trials.push_back(Value(advance->trial_id));
    }
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult owned,
      connection.Exec(sql::kCheckOwnerToCommit, {PgArray(trials), group.request.owner_epoch}));
  if (owned.row_count() == static_cast<int>(trials.size())) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const PgResult existing,
                            connection.Exec(sql::kReadTrialsToCommit, {PgArray(trials)}));
  if (existing.row_count() > owned.row_count()) {
    return absl::AbortedError(
        absl::StrCat("owner epoch ", group.request.owner_epoch, " is over: another master owns ",
                     existing.row_count() - owned.row_count(), " of ", trials.size(), " trials"));
  }
  std::vector<TrialId> present;
  for (int row = 0; row < owned.row_count(); ++row) present.push_back(TrialId{owned.Int64(row, 0)});
  for (const WriterAdvance* advance : group.sorted) {
    if (!std::binary_search(present.begin(), present.end(), advance->trial_id)) {
      group.Answer(*advance, {AdvanceOutcome::kFenced, 0});
    }
  }
  return absl::OkStatus();
}

absl::Status PgWriter::Advance(PgConnection& connection, Group& group) {
  GuardVectors v;
  std::map<WriterKey, const WriterAdvance*> asked;
  for (const WriterAdvance* advance : group.sorted) {
    if (group.Answered(*advance)) continue;
    asked.emplace(KeyOf(*advance), advance);
    v.trials.push_back(Value(advance->trial_id));
    v.writers.push_back(Value(advance->writer_no));
    v.generations.push_back(static_cast<std::int64_t>(advance->generation));
    v.firsts.push_back(static_cast<std::int64_t>(advance->first_sequence));
    v.lasts.push_back(static_cast<std::int64_t>(advance->last_sequence));
    v.crcs.push_back(advance->last_crc32c);
    v.states.push_back(StateAfter(*advance));
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult moved,
      connection.Exec(sql::kAdvanceWriters,
                      {PgArray(v.trials), PgArray(v.writers), PgArray(v.generations),
                       PgArray(v.firsts), PgArray(v.lasts), PgArray(v.crcs), PgArray(v.states)}));
  for (int row = 0; row < moved.row_count(); ++row) {
    const WriterAdvance& advance =
        *asked.at({TrialId{moved.Int64(row, 0)}, WriterNo{moved.Int32(row, 1)}});
    group.Answer(advance, {AdvanceOutcome::kCommitted, advance.last_sequence});
  }
  return absl::OkStatus();
}

absl::Status PgWriter::JudgeRefused(PgConnection& connection, Group& group) {
  std::vector<const WriterAdvance*> refused;
  std::vector<WriterKey> keys;
  for (const WriterAdvance* advance : group.sorted) {
    if (group.Answered(*advance)) continue;
    refused.push_back(advance);
    keys.push_back(KeyOf(*advance));
  }
  if (refused.empty()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const ProgressMap stored, ReadProgressOf(connection, keys));
  for (const WriterAdvance* advance : refused) {
    const auto found = stored.find(KeyOf(*advance));
    AdvanceResult result =
        JudgeAdvance(*advance, found == stored.end() ? std::nullopt : std::optional(found->second));
    if (result.outcome == AdvanceOutcome::kCommitted) {
      // It would pass now, but the guard had refused it: the caller comes again.
      result = {AdvanceOutcome::kMismatch, found->second.committed_sequence};
    }
    group.Answer(*advance, result);
    if (result.outcome == AdvanceOutcome::kRepeat && RepeatCloses(*advance, found->second)) {
      group.closing_repeats.push_back(advance);
    }
  }
  return absl::OkStatus();
}

absl::Status PgWriter::CloseRepeats(PgConnection& connection, const Group& group) {
  for (const WriterAdvance* advance : group.closing_repeats) {
    STEPWELL_RETURN_IF_ERROR(
        connection
            .Exec(sql::kCloseWriter,
                  {Value(advance->trial_id), Value(advance->writer_no),
                   static_cast<std::int64_t>(advance->generation),
                   static_cast<std::int64_t>(advance->last_sequence), StateAfter(*advance)})
            .status());
  }
  return absl::OkStatus();
}

absl::Status PgWriter::StoreGaps(PgConnection& connection, const Group& group) {
  std::vector<TrialGap> gaps;
  for (const WriterAdvance* advance : group.AcceptedOnes()) {
    for (const Gap& gap : advance->gaps) {
      gaps.push_back({advance->trial_id, gap});
      gaps.back().gap.writer_no = advance->writer_no;
    }
  }
  return WriteGaps(connection, gaps);
}

absl::Status PgWriter::CopyJournal(PgConnection& connection, const Group& group, int segment) {
  const std::vector<const WriterAdvance*> accepted = group.AcceptedOnes();
  const std::vector<JournalRowPlan> rows = PlanJournalRows(accepted);
  if (rows.empty()) return absl::OkStatus();
  const std::int64_t received_time_us = ring_->AscendingTime(group.request.received_time_us);
  STEPWELL_ASSIGN_OR_RETURN(const std::int64_t bytes,
                            CopyJournalRows(connection, segment, received_time_us, rows,
                                            [this] { return Pass("commit_mid_copy"); }));
  ring_->NoteWritten(segment, {.row_count = static_cast<std::int64_t>(rows.size()),
                               .bytes = bytes,
                               .first_time_us = received_time_us,
                               .last_time_us = received_time_us});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AdvanceResult>> PgWriter::ReadBack(Group& group) {
  ++commits_in_doubt_;
  std::vector<WriterKey> keys;
  for (const WriterAdvance* advance : group.sorted) keys.push_back(KeyOf(*advance));
  auto stored = ReadBackProgress(link_, keys, options_.read_back_timeout);
  if (!stored.ok()) return Annotate(stored.status(), "commit group");
  int shown_count = 0;
  for (const WriterAdvance* advance : group.AcceptedOnes()) {
    const auto found = stored->find(KeyOf(*advance));
    const bool shown = found != stored->end() && ShowsCommitted(*advance, found->second);
    shown_count += shown ? 1 : 0;
    if (!shown) {
      group.Answer(*advance, {AdvanceOutcome::kMismatch,
                              found == stored->end() ? 0 : found->second.committed_sequence});
    }
  }
  log::Info("commit_in_doubt_settled",
            {{"committed", shown_count}, {"writers", group.sorted.size()}});
  if (shown_count > 0) return group.ResultsInOrder();
  return absl::UnavailableError("commit group: COMMIT was lost and did not happen");
}

}  // namespace stepwell
