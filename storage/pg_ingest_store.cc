#include "storage/pg_ingest_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/pg_array.h"
#include "storage/pg_book_change.h"
#include "storage/pg_error.h"
#include "storage/pg_journal.h"
#include "storage/pg_profiling.h"
#include "storage/pg_progress.h"
#include "storage/pg_sql.h"
#include "storage/pg_stopped_copies.h"

namespace stepwell {
namespace {

PgConnection::Options ConnectionOptions(const PgIngestStore::Options& options, const char* name) {
  return {.url = options.url,
          .application_name = name,
          .idle_in_transaction_timeout = options.idle_in_transaction_timeout,
          .cut = options.cut};
}

// Of small rows, each two seconds, on the thread that tells clients their credit. Beyond a few
// seconds without an answer the database counts as down.
PgConnection::Options OwnerOptions(const PgIngestStore::Options& options) {
  PgConnection::Options owner = ConnectionOptions(options, "stepwell-owner");
  owner.connect_timeout = absl::Seconds(4);
  owner.statement_timeout = absl::Seconds(4);
  owner.reply_timeout = absl::Seconds(5);
  return owner;
}

// What waits for locks, or for disks, holds its own no longer than a session that is idle.
PgConnection::Options CommitOptions(const PgIngestStore::Options& options) {
  PgConnection::Options commit = ConnectionOptions(options, "stepwell-commit");
  commit.statement_timeout = options.idle_in_transaction_timeout;
  commit.plans_by_index = true;
  return commit;
}

// Whoever holds the row now.
absl::StatusOr<Ownership> ReadOwner(PgConnection& connection) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult owner, connection.Exec(sql::kReadOwner));
  if (owner.row_count() == 0) return Ownership{};
  return Ownership{.is_owner = false,
                   .epoch = owner.Int64(0, 1),
                   .owner_id = std::string(owner.Text(0, 0)),
                   .renewed_age_seconds = owner.Float64(0, 2),
                   .renewal_us = owner.TimestampUs(0, 3)};
}

// Why a guarded UPDATE of the trial's row did nothing.
absl::Status WhyUntouched(PgConnection& connection, TrialId trial_id, std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(const PgResult living,
                            connection.Exec(sql::kFindLivingTrial, {Value(trial_id)}));
  if (living.row_count() == 0) {
    return absl::NotFoundError(absl::StrCat("trial ", Value(trial_id), ": there is none"));
  }
  return absl::AbortedError(absl::StrCat("trial ", Value(trial_id), ": owner epoch ", owner_epoch,
                                         " is over: another master owns it"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PgIngestStore>> PgIngestStore::Open(
    const Options& options, std::shared_ptr<JournalRing> ring) {
  std::unique_ptr<PgIngestStore> store(
      new PgIngestStore(options, ConnectionOptions(options, "stepwell-control"), std::move(ring)));
  STEPWELL_RETURN_IF_ERROR(Annotate(store->ReadRing(), "read the journal's segments"));
  return store;
}

PgIngestStore::PgIngestStore(const Options& options, PgConnection::Options connection,
                             std::shared_ptr<JournalRing> ring)
    : ring_(std::move(ring)),
      book_changes_(options.book_changes),
      owned_place_(options.owned_place),
      stopped_copy_age_(options.stopped_copy_age),
      writer_({.connection = CommitOptions(options),
               .owned_place = options.owned_place,
               .read_back_timeout = options.read_back_timeout,
               .at_point = options.at_point},
              ring_),
      shelf_(connection, options.control_connections_max),
      many_series_shelf_(std::move(connection), 1),
      many_series_rest_({}),
      opens_(OpensTogether()),
      few_series_(SeriesTogether()),
      many_series_({.count_max = 1}),
      owner_shelf_(OwnerOptions(options), 1) {}

absl::Status PgIngestStore::ReadRing() {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const auto segments, ReadJournalSegments(*connection));
  ring_->Start(segments, absl::ToUnixMicros(absl::Now()));
  return absl::OkStatus();
}

namespace {

absl::StatusOr<PgResult> Renew(PgConnection& connection, const OwnerClaim& claim) {
  return connection.Exec(sql::kRenewOwnership, {claim.master_id, claim.address, claim.epoch});
}

absl::StatusOr<PgResult> Acquire(PgConnection& connection, const OwnerClaim& claim) {
  absl::StatusOr<PgResult> taken = absl::UnknownError("not asked");
  const absl::Status done = connection.InTransaction([&]() -> absl::Status {
    STEPWELL_ASSIGN_OR_RETURN(
        const PgResult locked,
        connection.Exec(sql::kLockOwnerToTake,
                        {claim.master_id, claim.last_epoch, PgTimestamp{claim.lapsed_renewal_us}}));
    const SqlText take =
        locked.row_count() == 1 ? SqlText(sql::kTakeOwnership) : SqlText(sql::kBeginOwnership);
    taken = connection.Exec(take, {claim.master_id, claim.address, claim.last_epoch});
    return taken.status();
  });
  STEPWELL_RETURN_IF_ERROR(done);
  return taken;
}

}  // namespace

absl::StatusOr<Ownership> PgIngestStore::AcquireOwnership(const OwnerClaim& claim) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, owner_shelf_.Borrow());
  const bool renews = claim.epoch != 0;
  Ownership before;
  if (!renews && claim.last_epoch == 0) {
    STEPWELL_ASSIGN_OR_RETURN(before, ReadOwner(*connection));
  }
  STEPWELL_ASSIGN_OR_RETURN(const PgResult taken,
                            renews ? Renew(*connection, claim) : Acquire(*connection, claim));
  Ownership owner{.is_owner = true, .epoch = 0, .owner_id = claim.master_id};
  if (taken.row_count() == 0) {
    STEPWELL_ASSIGN_OR_RETURN(owner, ReadOwner(*connection));
  } else {
    owner.epoch = taken.Int64(0, 0);
    // The epoch is committed: whatever comes of the look, the claimant must know it.
    const auto incarnation = incarnation_.Look(*connection, owner.epoch);
    owner.look = incarnation.status();
    if (incarnation.ok()) owner.incarnation = *incarnation;
    if (incarnation.ok() && !renews && owned_place_ != nullptr) {
      owned_place_->Note(owner.epoch, incarnation_.looked_at());
    }
  }
  owner.owner_before = std::move(before.owner_id);
  return owner;
}

absl::Status PgIngestStore::ReleaseOwnership(const std::string& master_id, std::int64_t epoch) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, owner_shelf_.Borrow());
  return connection->Exec(sql::kReleaseOwnership, {master_id, epoch}).status();
}

absl::Status PgIngestStore::FenceTrials(std::int64_t epoch) {
  {
    STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
    // Where it may not, the fence waits as long as a statement may, and is tried again.
    if (const auto ended = EndStoppedCopies(*connection, stopped_copy_age_); !ended.ok()) {
      log::Warning("stopped_copies_not_ended", {{"status", ended.status().ToString()}});
    }
    const auto fence = [&](const SqlText& lock_trials) {
      return connection->InTransaction([&]() -> absl::Status {
        STEPWELL_ASSIGN_OR_RETURN(const PgResult locked, connection->Exec(lock_trials, {epoch}));
        std::vector<std::int64_t> trials;
        for (int row = 0; row < locked.row_count(); ++row) trials.push_back(locked.Int64(row, 0));
        return connection->Exec(sql::kRaiseOwnerEpoch, {PgArray(trials), epoch}).status();
      });
    };
    STEPWELL_RETURN_IF_ERROR(ChangeBook(book_changes_.get(), BookScope::All(), [&] {
      const absl::Status fenced = fence(sql::kLockTrialsToFence);
      return IsUnreadable(fenced) ? fence(sql::kLockAllTrialsToFence) : fenced;
    }));
  }
  // The former owner may have filled the segments since we looked.
  return ReadRing();
}

absl::StatusOr<std::vector<WriterProgress>> PgIngestStore::ReadWriters() {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const PgResult rows, connection->Exec(sql::kReadUnfinishedWriters));
  return ProgressRows(rows);
}

absl::Status PgIngestStore::ReadUnfoldedJournal(
    const std::function<absl::Status(JournalRow)>& row) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  return Annotate(ReadUnfoldedRows(*connection, row), "read the journal");
}

absl::StatusOr<Uuid> PgIngestStore::ReadIncarnation() {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const PgResult row, connection->Exec(sql::kReadIncarnation));
  if (row.row_count() != 1) return absl::DataLossError("stepwell.database must hold one row");
  return row.UuidAt(0, 0);
}

absl::StatusOr<std::vector<AdvanceResult>> PgIngestStore::Commit(
    const CommitGroupRequest& request) {
  // Samples alone change no book before they are folded.
  std::vector<TrialId> changed;
  for (const WriterAdvance& advance : request.advances) {
    if (advance.closing || !advance.gaps.empty()) changed.push_back(advance.trial_id);
  }
  if (changed.empty()) return writer_.Commit(request);
  return ChangeBook(book_changes_.get(), BookScope::Of(std::move(changed)),
                    [&] { return writer_.Commit(request); });
}

absl::StatusOr<std::vector<WriterProgress>> PgIngestStore::ReadProgress(
    TrialId trial_id, absl::Span<const WriterNo> writers) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, owner_shelf_.Borrow());
  std::vector<std::pair<TrialId, WriterNo>> keys;
  for (const WriterNo writer_no : writers) keys.emplace_back(trial_id, writer_no);
  // Settled: after a COMMIT in doubt the answer must be the last word.
  STEPWELL_ASSIGN_OR_RETURN(const ProgressMap stored, ReadSettledProgress(*connection, keys));
  std::vector<WriterProgress> rows;
  for (const auto& [key, row] : stored) rows.push_back(row);
  return rows;
}

absl::StatusOr<TrialWriters> PgIngestStore::ReadTrialWriters(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, owner_shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult rows,
      connection->Exec(sql::kReadTrialWriters, {Value(trial_id), std::int64_t{kOpenWritersTold}}));
  TrialWriters writers;
  for (int row = 0; row < rows.row_count(); ++row) {
    if (rows.IsNull(row, 0)) {
      writers.any_died = true;
    } else {
      writers.open.push_back(WriterNo{rows.Int32(row, 0)});
    }
  }
  return writers;
}

absl::Status PgIngestStore::SetTrialState(TrialId trial_id, TrialState state,
                                          std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, owner_shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult updated, ChangeBook(book_changes_.get(), BookScope::Of(trial_id), [&] {
        return connection->Exec(sql::kSetTrialState,
                                {Value(trial_id), static_cast<std::int16_t>(state), owner_epoch});
      }));
  if (updated.affected_count() == 1) return absl::OkStatus();
  return WhyUntouched(*connection, trial_id, owner_epoch);
}

absl::StatusOr<TrialProfiling> PgIngestStore::SetProfiling(TrialId trial_id,
                                                           const TrialProfiling& wanted,
                                                           std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(
      const PgResult updated, ChangeBook(book_changes_.get(), BookScope::Of(trial_id), [&] {
        return connection->Exec(sql::kSetProfiling, {Value(trial_id), wanted.on, wanted.interval_us,
                                                     PgArray(wanted.metric_groups), owner_epoch});
      }));
  if (updated.row_count() == 1) return ProfilingAt(updated, 0, 0);
  return WhyUntouched(*connection, trial_id, owner_epoch);
}

}  // namespace stepwell
