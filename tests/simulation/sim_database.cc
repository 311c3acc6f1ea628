#include "tests/simulation/sim_database.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/journal_codec.h"
#include "stepwell/v1/model.pb.h"
#include "storage/pg_error.h"

namespace stepwell::simulation {
namespace {

SampleNumber SampleOf(double value) { return static_cast<SampleNumber>(value); }

const char* Words(AdvanceOutcome outcome) {
  switch (outcome) {
    case AdvanceOutcome::kCommitted:
      return "a chunk committed";
    case AdvanceOutcome::kRepeat:
      return "a chunk repeated";
    case AdvanceOutcome::kFenced:
      return "a chunk fenced";
    case AdvanceOutcome::kMismatch:
      return "a chunk of another sequence";
  }
  return "";
}

}  // namespace

absl::Status SimDatabase::CheckUp() const {
  return down_ ? absl::UnavailableError("the database is away") : absl::OkStatus();
}

absl::StatusOr<std::vector<AdvanceResult>> SimDatabase::Commit(const CommitGroupRequest& request) {
  STEPWELL_RETURN_IF_ERROR(CheckUp());
  if (chance_.Of(refused_)) return absl::UnavailableError("a deadlock, say");
  auto results = store_.Commit(request);
  if (!results.ok()) return results;
  for (std::size_t i = 0; i < results->size(); ++i) {
    const WriterAdvance& advance = request.advances[i];
    trace_.Add("  stored writer ", Value(advance.writer_no), " g", advance.generation, " ",
               advance.first_sequence, "-", advance.last_sequence, " outcome ",
               static_cast<int>((*results)[i].outcome), " at ", (*results)[i].committed_sequence);
    history_.Saw(Words((*results)[i].outcome));
    if ((*results)[i].outcome == AdvanceOutcome::kCommitted) NoteCommitted(advance);
  }
  return results;
}

// What a reader of the journal would find, by its own code.
void SimDatabase::NoteCommitted(const WriterAdvance& advance) {
  const Writer& writer = writers_.at({advance.trial_id, advance.writer_no});
  for (const Gap& gap : advance.gaps) {
    // Its number is that of the wire contract.
    history_.Saw(v1::GapCause_Name(static_cast<v1::GapCause>(static_cast<int>(gap.cause))));
    history_.Told(writer.rank, gap.first_sequence, gap.last_sequence);
    if (gap.cause != GapCause::kRejected) continue;
    history_.Rejected(writer.uuid, writer.rank, gap.first_sequence, gap.last_sequence);
  }
  std::vector<JournalEntry> entries;
  const absl::Status read = DecodeJournalPayload(advance.payload, entries);
  if (!read.ok()) history_.Fail(absl::StrCat("a journal row is unreadable: ", read.ToString()));
  for (const JournalEntry& entry : entries) {
    DecodedChunk chunk;
    if (!entry.has_body) continue;
    if (const absl::Status body = DecodeJournalBody(entry, chunk); !body.ok()) {
      history_.Fail(absl::StrCat("a journal entry is unreadable: ", body.ToString()));
    }
    for (const TickTable& table : chunk.tables) {
      for (const TickColumn& column : table.columns) {
        for (const double value : column.values) {
          history_.Committed(column.series_no, SampleOf(value));
        }
      }
    }
  }
}

absl::Status SimDatabase::Fold(std::int64_t owner_epoch, const std::vector<WriterFold>& folds) {
  STEPWELL_RETURN_IF_ERROR(CheckUp());
  if (owner_epoch != newest_epoch_) return absl::AbortedError("another master owns the database");
  for (const WriterFold& fold : folds) {
    if (writers_[{fold.trial_id, fold.writer_no}].folded_sequence != fold.from_sequence_exclusive) {
      return absl::FailedPreconditionError("the fold does not begin where the last one ended");
    }
    const auto progress = store_.ReadProgress(fold.trial_id, {fold.writer_no});
    if (progress->empty() || progress->at(0).committed_sequence < fold.to_sequence) {
      return absl::FailedPreconditionError("the fold goes beyond what is committed");
    }
  }
  for (const WriterFold& fold : folds) {
    for (const WriterFold::Part& part : fold.parts) {
      for (const TickTable& table : *part.tables) {
        for (const TickColumn& column : table.columns) {
          for (const double value : column.values) {
            history_.Folded(column.series_no, SampleOf(value));
          }
        }
      }
    }
    if (!fold.gaps.empty()) history_.Fail("a fold declares a hole in the journal");
    writers_[{fold.trial_id, fold.writer_no}].folded_sequence = fold.to_sequence;
    store_.SetFolded(fold.trial_id, fold.writer_no, fold.to_sequence);
  }
  return absl::OkStatus();
}

void SimDatabase::NoteOpened(const OpenWriterRequest& request, const OpenedWriter& opened) {
  Writer& writer = writers_[{opened.trial_id, opened.writer_no}];
  writer.uuid = request.writer;
  writer.rank = request.rank;
  history_.Opened(request.rank);
}

void SimDatabase::Keep() {
  trace_.Add("the database is kept");
  kept_ = store_.BackUp();
  kept_writers_ = writers_;
  kept_epoch_ = newest_epoch_;
  history_.KeepDatabase();
}

bool SimDatabase::PutBack(bool is_noticed) {
  if (kept_ == nullptr) return false;
  trace_.Add("the database is set back", is_noticed ? "" : ", as it was");
  store_.PutBack(*kept_);
  ++session_;
  if (is_noticed) {
    ++place_;
    store_.RenewIncarnation();
  }
  writers_ = kept_writers_;
  newest_epoch_ = kept_epoch_;
  history_.PutDatabaseBack(is_noticed);
  history_.Saw(is_noticed ? "set back" : "set back, unnoticed");
  return true;
}

std::map<int, Declared> SimDatabase::DeclaredByRank() const {
  std::map<int, Declared> by_rank;
  for (const auto& [key, writer] : writers_) {
    for (const Gap& gap : store_.gaps(key.first)) {
      if (gap.writer_no != key.second) continue;
      Declared& declared = by_rank[writer.rank];
      declared.sample_count += static_cast<std::uint64_t>(gap.sample_count);
      // A spool that gives up a segment counts what arrived of it, too, where it had not read the ack,
      // and not what frames in it told as lost.
      const bool is_rough = gap.sample_count == 0 || gap.cause == GapCause::kSpoolFull;
      if (is_rough) declared.is_exact = false;
      // What found no room in a ring was in no frame.
      if (gap.last_sequence != 0) {
        declared.sequences.emplace_back(gap.first_sequence, gap.last_sequence);
      }
    }
  }
  return by_rank;
}

void SimStore::GoOnMeanwhile() {
  if (killed_) throw MasterKilled();
  meanwhile_();
  if (killed_) throw MasterKilled();
}

absl::StatusOr<Ownership> SimStore::AcquireOwnership(const OwnerClaim& claim) {
  STEPWELL_RETURN_IF_ERROR(database_.CheckUp());
  auto owner = database_.store_.AcquireOwnership(claim);
  if (owner.ok() && owner->is_owner) database_.newest_epoch_ = owner->epoch;
  if (owner.ok() && owner->is_owner && claim.epoch == 0) owned_place_ = database_.place_;
  return owner;
}

absl::Status SimStore::ReleaseOwnership(const std::string& master_id, std::int64_t epoch) {
  STEPWELL_RETURN_IF_ERROR(database_.CheckUp());
  return database_.store_.ReleaseOwnership(master_id, epoch);
}

absl::Status SimStore::FenceTrials(std::int64_t epoch) {
  STEPWELL_RETURN_IF_ERROR(database_.CheckUp());
  return database_.store_.FenceTrials(epoch);
}

absl::StatusOr<std::vector<WriterProgress>> SimStore::ReadWriters() {
  STEPWELL_RETURN_IF_ERROR(database_.CheckUp());
  return database_.store_.ReadWriters();
}

absl::Status SimStore::ReadUnfoldedJournal(const std::function<absl::Status(JournalRow)>& row) {
  STEPWELL_RETURN_IF_ERROR(database_.CheckUp());
  return database_.store_.ReadUnfoldedJournal(row);
}

absl::StatusOr<Uuid> SimStore::ReadIncarnation() { return database_.store_.ReadIncarnation(); }

absl::StatusOr<OpenedWriter> SimStore::OpenWriter(const OpenWriterRequest& request) {
  STEPWELL_RETURN_IF_ERROR(database_.CheckUp());
  auto opened = database_.store_.OpenWriter(request);
  if (opened.ok()) database_.NoteOpened(request, *opened);
  return opened;
}

absl::StatusOr<std::vector<SeriesNo>> SimStore::FindOrCreateSeries(
    TrialId trial_id, absl::Span<const SeriesDefinition> definitions, int series_max,
    std::int64_t* created) {
  // The caller waits for a database that is away: the world does not bring it definitions then.
  return database_.store_.FindOrCreateSeries(trial_id, definitions, series_max, created);
}

absl::StatusOr<std::vector<AdvanceResult>> SimStore::Commit(const CommitGroupRequest& request) {
  const std::int64_t session = database_.session_;
  GoOnMeanwhile();
  if (session != database_.session_) return absl::UnavailableError("the session ended");
  // As PgSessionPlace::Check.
  if (!is_in_its_place()) return absl::AbortedError("another database");
  auto results = database_.Commit(request);
  GoOnMeanwhile();
  const bool has_ended = session != database_.session_;
  if (results.ok() && (has_ended || database_.LosesAnswer())) {
    return CommitUnknown("the answer was lost");
  }
  return results;
}

absl::StatusOr<std::vector<WriterProgress>> SimStore::ReadProgress(
    TrialId trial_id, absl::Span<const WriterNo> writers) {
  STEPWELL_RETURN_IF_ERROR(database_.CheckUp());
  return database_.store_.ReadProgress(trial_id, writers);
}

absl::StatusOr<TrialWriters> SimStore::ReadTrialWriters(TrialId trial_id) {
  STEPWELL_RETURN_IF_ERROR(database_.CheckUp());
  return database_.store_.ReadTrialWriters(trial_id);
}

absl::Status SimStore::SetTrialState(TrialId trial_id, TrialState state, std::int64_t owner_epoch) {
  return database_.store_.SetTrialState(trial_id, state, owner_epoch);
}

absl::StatusOr<TrialProfiling> SimStore::SetProfiling(TrialId trial_id,
                                                      const TrialProfiling& wanted,
                                                      std::int64_t owner_epoch) {
  return database_.store_.SetProfiling(trial_id, wanted, owner_epoch);
}

}  // namespace stepwell::simulation
