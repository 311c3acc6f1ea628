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
#include "storage/pg_error.h"
#include "storage/pg_gap_writer.h"
#include "storage/pg_journal.h"
#include "storage/pg_progress.h"
#include "storage/pg_sql.h"

namespace stepwell {
namespace {

using WriterKey = std::pair<TrialId, WriterNo>;

WriterKey KeyOf(const WriterAdvance& advance) { return {advance.trial_id, advance.writer_no}; }

// Into a table, what lies out of line beside it, or an index.
bool CannotBeWritten(const absl::Status& status) {
  return IsUnreadable(status) || IsDamage(status);
}

// The vectors of kCloseWriters.
struct CloseVectors {
  void Add(const WriterAdvance& advance, std::uint64_t first_sequence) {
    trials.push_back(Value(advance.trial_id));
    writers.push_back(Value(advance.writer_no));
    generations.push_back(static_cast<std::int64_t>(advance.generation));
    firsts.push_back(static_cast<std::int64_t>(first_sequence));
    lasts.push_back(static_cast<std::int64_t>(advance.last_sequence));
    crcs.push_back(advance.last_crc32c);
    states.push_back(static_cast<std::int16_t>(*advance.closing));
  }

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
  // Where the writers stood when their rows were locked.
  ProgressMap stands;
  // Repeats that bring a Close.
  std::vector<const WriterAdvance*> closing_repeats;
};

PgWriter::PgWriter(Options options, std::shared_ptr<JournalRing> ring)
    : options_(std::move(options)),
      ring_(std::move(ring)),
      place_(options_.owned_place),
      link_(options_.connection) {}

absl::StatusOr<std::vector<AdvanceResult>> PgWriter::Commit(const CommitGroupRequest& request) {
  STEPWELL_RETURN_IF_ERROR(CheckGroup(request));
  if (request.advances.empty()) return std::vector<AdvanceResult>();
  Group group(request);
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link_.Get());
  if (link_.opened_count() != book_connection_) book_.End();
  STEPWELL_RETURN_IF_ERROR(Annotate(
      place_.Check(*connection, link_.opened_count(), request.owner_epoch), "commit group"));
  const absl::Status written = Write(*connection, group);
  if (written.ok()) {
    NoteStands(group);
    return group.ResultsInOrder();
  }
  book_.End();
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
  STEPWELL_RETURN_IF_ERROR(LockWriters(connection, group));
  Judge(group);
  STEPWELL_RETURN_IF_ERROR(Advance(connection, group, entry.segment()));
  STEPWELL_RETURN_IF_ERROR(Pass("commit_after_guard"));
  STEPWELL_RETURN_IF_ERROR(StoreGaps(connection, group));
  STEPWELL_RETURN_IF_ERROR(CopyJournal(connection, group, entry.segment()));
  STEPWELL_RETURN_IF_ERROR(Pass("commit_before_commit"));
  STEPWELL_RETURN_IF_ERROR(connection.Commit());
  // The commit is known: what fails from here on must not look like a failed commit.
  Pass("commit_after_commit").IgnoreError();
  return absl::OkStatus();
}

// Its row is held by one commit at a time. Where the newest book is not ours, we begin one: from our COMMIT
// on, that one is worthless. Without a COMMIT ours is.
absl::Status PgWriter::HoldBook(PgConnection& connection, const PgResult& held) {
  if (held.row_count() == 1 && book_.Holds(held.Int64(0, 0))) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const PgResult begun, connection.Exec(sql::kBeginProgressBook));
  if (begun.row_count() != 1) {
    return absl::DataLossError("stepwell.progress_book must hold one row");
  }
  book_.Begin(begun.Int64(0, 0));
  book_connection_ = link_.opened_count();
  return absl::OkStatus();
}

// What is committed now. A closed writer says no more.
void PgWriter::NoteStands(const Group& group) {
  for (const auto& [key, stand] : group.stands) {
    book_.Note(key, stand.generation, stand.committed_sequence);
  }
  for (const WriterAdvance* advance : group.AcceptedOnes()) {
    if (advance->closing.has_value()) {
      book_.Forget(KeyOf(*advance));
    } else {
      book_.Note(KeyOf(*advance), advance->generation, advance->last_sequence);
    }
  }
}

// Locks the writers' rows, after the row of the book and those of the trials: from here on nobody else
// moves, opens or folds them.
absl::Status PgWriter::LockWriters(PgConnection& connection, Group& group) {
  std::vector<std::int64_t> trials, writer_trials;
  std::vector<std::int32_t> writers;
  for (const WriterAdvance* advance : group.sorted) {
    if (trials.empty() || trials.back() != Value(advance->trial_id)) {
      trials.push_back(Value(advance->trial_id));
    }
    writer_trials.push_back(Value(advance->trial_id));
    writers.push_back(Value(advance->writer_no));
  }
  const std::vector<PgStatement> statements = {
      {sql::kHoldProgressBook, {}, /*keep=*/true},
      {sql::kCheckOwnerToCommit, {PgArray(trials), group.request.owner_epoch}, /*keep=*/true},
      {sql::kLockWriterPairs, {PgArray(writer_trials), PgArray(writers)}, /*keep=*/true}};
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<PgResult> results, connection.ExecAll(statements));
  STEPWELL_RETURN_IF_ERROR(HoldBook(connection, results[0]));
  group.stands = ProgressMapOf(results[2]);
  STEPWELL_RETURN_IF_ERROR(CompleteStands(connection, group));
  return CheckOwner(connection, trials, results[1], group);
}

// A trial that is gone, archived or deleted fences its writers; one of another owner stops us.
absl::Status PgWriter::CheckOwner(PgConnection& connection, const std::vector<std::int64_t>& trials,
                                  const PgResult& owned, Group& group) {
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
      // With what is stored: a COMMIT in doubt may have been, before the trial was archived.
      const auto stand = group.stands.find(KeyOf(*advance));
      group.Answer(*advance, {AdvanceOutcome::kFenced,
                              stand == group.stands.end() ? 0 : stand->second.committed_sequence});
    }
  }
  return absl::OkStatus();
}

// The rows may be behind: the rest is in the book, or in the segments of progress.
absl::Status PgWriter::CompleteStands(PgConnection& connection, Group& group) {
  WriterKeys unknown;
  for (auto& [key, stand] : group.stands) {
    const auto known = book_.Find(key, stand.generation);
    if (!known) {
      unknown.push_back(key);
    } else {
      stand.committed_sequence = std::max(stand.committed_sequence, *known);
    }
  }
  if (unknown.empty()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(const ProgressMap read, ReadProgressOf(connection, unknown));
  for (const auto& [key, stand] : read) group.stands[key] = stand;
  return absl::OkStatus();
}

// The guard: AdvanceRules over rows that we hold.
void PgWriter::Judge(Group& group) {
  for (const WriterAdvance* advance : group.sorted) {
    if (group.Answered(*advance)) continue;
    const auto found = group.stands.find(KeyOf(*advance));
    if (found == group.stands.end()) {
      group.Answer(*advance, JudgeAdvance(*advance, std::nullopt));
      continue;
    }
    const AdvanceResult result = JudgeAdvance(*advance, found->second);
    group.Answer(*advance, result);
    if (result.outcome == AdvanceOutcome::kRepeat && RepeatCloses(*advance, found->second)) {
      group.closing_repeats.push_back(advance);
    }
  }
}

absl::Status PgWriter::Advance(PgConnection& connection, const Group& group, int segment) {
  std::vector<ProgressRow> rows;
  for (const WriterAdvance* advance : group.AcceptedOnes()) {
    if (advance->closing.has_value()) continue;
    rows.push_back({.trial_id = advance->trial_id,
                    .writer_no = advance->writer_no,
                    .committed_sequence = advance->last_sequence,
                    .last_crc32c = advance->last_crc32c});
  }
  const absl::Status inserted = InsertProgress(connection, segment, rows);
  if (CannotBeWritten(inserted)) return LeaveSegment(segment, inserted);
  STEPWELL_RETURN_IF_ERROR(inserted);
  return CloseWriters(connection, group);
}

absl::Status PgWriter::CloseWriters(PgConnection& connection, const Group& group) {
  CloseVectors v;
  for (const WriterAdvance* advance : group.AcceptedOnes()) {
    if (advance->closing.has_value()) v.Add(*advance, advance->first_sequence);
  }
  // Of a repeat nothing is new but that it closes.
  for (const WriterAdvance* advance : group.closing_repeats) {
    v.Add(*advance, advance->last_sequence + 1);
  }
  if (v.trials.empty()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult closed,
      connection.Exec(sql::kCloseWriters,
                      {PgArray(v.trials), PgArray(v.writers), PgArray(v.generations),
                       PgArray(v.firsts), PgArray(v.lasts), PgArray(v.crcs), PgArray(v.states)}));
  if (closed.affected_count() == static_cast<std::int64_t>(v.trials.size())) {
    return absl::OkStatus();
  }
  return absl::InternalError(absl::StrCat("closed ", closed.affected_count(), " of ",
                                          v.trials.size(), " writers whose rows are held"));
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

// A page of it cannot be written: whoever comes again goes to the next segment.
absl::Status PgWriter::LeaveSegment(int segment, const absl::Status& why) {
  LogDamagedSegment(segment, why);
  ring_->NoteDamaged(segment);
  return absl::UnavailableError(absl::StrCat("journal segment ", segment, " cannot be written"));
}

absl::Status PgWriter::CopyJournal(PgConnection& connection, const Group& group, int segment) {
  const std::vector<const WriterAdvance*> accepted = group.AcceptedOnes();
  const std::vector<JournalRowPlan> rows = PlanJournalRows(accepted);
  if (rows.empty()) return absl::OkStatus();
  const std::int64_t received_time_us = ring_->AscendingTime(group.request.received_time_us);
  const auto bytes = CopyJournalRows(connection, segment, received_time_us, rows,
                                     [this] { return Pass("commit_mid_copy"); });
  if (CannotBeWritten(bytes.status())) return LeaveSegment(segment, bytes.status());
  STEPWELL_RETURN_IF_ERROR(bytes.status());
  // Not the row's own time, which goes on from where a clock of before stood: heads know the request's, and so does who
  // asks what may go.
  ring_->NoteWritten(segment, {.row_count = static_cast<std::int64_t>(rows.size()),
                               .bytes = *bytes,
                               .first_time_us = group.request.received_time_us,
                               .last_time_us = group.request.received_time_us});
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
