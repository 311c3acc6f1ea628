#include "storage/pg_caps_store.h"

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/pg_book_change.h"
#include "storage/pg_caps_places.h"
#include "storage/pg_caps_preview.h"
#include "storage/pg_caps_sql.h"
#include "storage/pg_owner.h"

namespace stepwell {
namespace {

constexpr absl::Duration kTurnPatience = absl::Seconds(10);
// What Delete removes itself.
constexpr absl::Duration kDeleteDuration = absl::Seconds(1);

PgConnection::Options ConnectionOptions(const PgCapsStore::Options& options) {
  PgConnection::Options connection;
  connection.url = options.url;
  connection.application_name = "stepwell-caps";
  connection.idle_in_transaction_timeout = options.idle_in_transaction_timeout;
  connection.cut = options.cut;
  return connection;
}

BookChanges::Outcome SweepOutcome(const absl::StatusOr<SweepResult>& swept) {
  return ChangeOutcome(swept.ok() ? swept->failed : swept.status());
}

absl::Status Gone(const FoundTrial& trial) {
  return absl::NotFoundError(absl::StrCat("trial ", Value(trial.trial_id), " was deleted"));
}

}  // namespace

PgCapsStore::PgCapsStore(const Options& options)
    : shelf_(ConnectionOptions(options), options.connections_max),
      book_changes_(options.book_changes) {}

absl::StatusOr<CapsReport> PgCapsStore::Get(const CapsTarget& target,
                                            const ProjectFilter& projects) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const FoundPlace found, FindPlace(*connection, target, projects));
  STEPWELL_ASSIGN_OR_RETURN(const Places places, ReadPlaces(*connection, projects));
  return ReportOf(places, found);
}

absl::StatusOr<CapsReport> PgCapsStore::Set(std::int64_t owner_epoch, const CapsTarget& target,
                                            const ProjectFilter& projects, const Caps& caps,
                                            const std::vector<std::string>& clear) {
  {
    STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
    const absl::Status changed = connection->InTransaction([&]() -> absl::Status {
      STEPWELL_RETURN_IF_ERROR(CheckMaster(*connection, owner_epoch));
      return SetPlace(*connection, target, projects, caps, clear);
    });
    STEPWELL_RETURN_IF_ERROR(ComeAgainIfUnknown(changed));
  }
  return Get(target, projects);
}

absl::StatusOr<CapRemovals> PgCapsStore::Preview(const PreviewRequest& request,
                                                 const ProjectFilter& projects) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  return PreviewCaps(*connection, request, projects);
}

absl::StatusOr<SweepResult> PgCapsStore::Sweep(std::int64_t owner_epoch,
                                               const SweepRequest& request,
                                               const ProjectFilter& projects) {
  {
    absl::MutexLock lock(&mu_);
    const auto is_free = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !is_sweeping_; };
    if (!mu_.AwaitWithTimeout(absl::Condition(&is_free), kTurnPatience)) {
      return absl::UnavailableError("another sweep is under way");
    }
    is_sweeping_ = true;
  }
  const absl::Cleanup release = [this] { EndSweeping(); };
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  auto swept = ChangeBook(
      book_changes_.get(), BookScope::All(),
      [&] { return sweeper_.Sweep(*connection, owner_epoch, request, projects); }, SweepOutcome);
  // Where the target is not there, it says so as everywhere.
  if (absl::IsNotFound(swept.status())) return swept.status();
  if (!swept.ok()) return ComeAgainIfUnknown(Annotate(swept.status(), "sweep"));
  return swept;
}

bool PgCapsStore::TryBeginSweeping() {
  absl::MutexLock lock(&mu_);
  if (is_sweeping_) return false;
  is_sweeping_ = true;
  return true;
}

void PgCapsStore::EndSweeping() {
  absl::MutexLock lock(&mu_);
  is_sweeping_ = false;
}

absl::StatusOr<ArchivedTrial> PgCapsStore::Archive(std::int64_t owner_epoch,
                                                   const TrialSelector& selector,
                                                   const ProjectFilter& projects, bool archived) {
  STEPWELL_RETURN_IF_ERROR(CheckTarget({.trial = selector}));
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const FoundTrial trial, FindTrialOf(*connection, selector, projects));
  const auto change = [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(*connection, owner_epoch));
    STEPWELL_ASSIGN_OR_RETURN(const PgResult locked,
                              connection->Exec(sql::kLockTrialToChange, {Value(trial.trial_id)}));
    if (locked.row_count() == 0 || locked.Bool(0, 1)) return Gone(trial);
    return connection->Exec(sql::kArchiveTrial, {Value(trial.trial_id), archived}).status();
  };
  const absl::Status changed = ChangeBook(book_changes_.get(), BookScope::Of(trial.trial_id),
                                          [&] { return connection->InTransaction(change); });
  STEPWELL_RETURN_IF_ERROR(ComeAgainIfUnknown(changed));
  return ArchivedTrial{trial.trial_id, archived};
}

absl::StatusOr<DeletedTrial> PgCapsStore::Delete(std::int64_t owner_epoch,
                                                 const TrialSelector& selector,
                                                 const ProjectFilter& projects) {
  STEPWELL_RETURN_IF_ERROR(CheckTarget({.trial = selector}));
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const FoundTrial trial, FindTrialOf(*connection, selector, projects));
  DeletedTrial deleted{.trial_id = trial.trial_id};
  const auto change = [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(*connection, owner_epoch));
    STEPWELL_ASSIGN_OR_RETURN(const PgResult locked,
                              connection->Exec(sql::kLockTrialToChange, {Value(trial.trial_id)}));
    if (locked.row_count() == 0) return Gone(trial);
    STEPWELL_ASSIGN_OR_RETURN(const PgResult held,
                              connection->Exec(sql::kSumUsageOfTrial, {Value(trial.trial_id)}));
    deleted.sample_count = held.Int64(0, 0);
    deleted.byte_count = held.Int64(0, 1);
    if (locked.Bool(0, 1)) return absl::OkStatus();
    STEPWELL_RETURN_IF_ERROR(
        connection->Exec(sql::kDeleteCapsOfTrial, {Value(trial.trial_id)}).status());
    STEPWELL_RETURN_IF_ERROR(connection->Exec(sql::kBuryTrial, {Value(trial.trial_id)}).status());
    STEPWELL_RETURN_IF_ERROR(
        connection->Exec(sql::kCloseWritersOf, {Value(trial.trial_id)}).status());
    return failpoint::Check("delete_before_commit");
  };
  const absl::Status changed = ChangeBook(book_changes_.get(), BookScope::Of(trial.trial_id),
                                          [&] { return connection->InTransaction(change); });
  STEPWELL_RETURN_IF_ERROR(ComeAgainIfUnknown(changed));
  STEPWELL_FAILPOINT("delete_after_commit");
  // A sweep under way may be at this very trial; it takes the rest, too.
  if (!TryBeginSweeping()) return deleted;
  const absl::Cleanup release = [this] { EndSweeping(); };
  // It is deleted; what is left goes with sweeps.
  const auto done = sweeper_.BuryTrial(*connection, owner_epoch, trial.trial_id, kDeleteDuration);
  if (!done.ok()) log::Warning("deleted_trial_rows_left", {{"status", done.status().ToString()}});
  deleted.done = done.ok() && *done;
  return deleted;
}

absl::StatusOr<TrialCaps> PgCapsStore::ReadTrialCaps(TrialId trial_id) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const auto caps, ReadCapsOfTrial(*connection, trial_id));
  if (!caps) {
    return absl::NotFoundError(absl::StrCat("there is no trial with the id ", Value(trial_id)));
  }
  return TrialCaps{.caps = ResolveCaps(caps->placed, caps->project_id, Value(trial_id), ""),
                   .created_time_us = caps->created_time_us};
}

absl::Status PgCapsStore::NoteWindowOver(std::int64_t owner_epoch, TrialId trial_id,
                                         std::int64_t end_us) {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, shelf_.Borrow());
  const auto change = [&]() -> absl::Status {
    STEPWELL_RETURN_IF_ERROR(CheckMaster(*connection, owner_epoch));
    STEPWELL_ASSIGN_OR_RETURN(const PgResult locked,
                              connection->Exec(sql::kLockTrialToChange, {Value(trial_id)}));
    if (locked.row_count() == 0 || locked.Bool(0, 1)) return Gone({.trial_id = trial_id});
    return connection
        ->Exec(sql::kNoteWindowOver, {Value(trial_id), end_us, std::string(kWindowOverReason)})
        .status();
  };
  return ChangeBook(book_changes_.get(), BookScope::Of(trial_id),
                    [&] { return connection->InTransaction(change); });
}

}  // namespace stepwell
