#include "storage/pg_fold_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "storage/fold_plan.h"
#include "storage/pg_book_change.h"
#include "storage/pg_error.h"
#include "storage/pg_fold_sql.h"
#include "storage/pg_journal.h"

namespace stepwell {
namespace {

PgConnection::Options ConnectionOptions(const PgFoldStore::Options& options, const char* name) {
  return {.url = options.url,
          .application_name = name,
          .idle_in_transaction_timeout = options.idle_in_transaction_timeout,
          .cut = options.cut};
}

// As of commits.
PgConnection::Options FoldOptions(const PgFoldStore::Options& options) {
  PgConnection::Options fold = ConnectionOptions(options, "stepwell-fold");
  fold.statement_timeout = options.idle_in_transaction_timeout;
  fold.plans_by_index = true;
  return fold;
}

BookScope TrialsOf(const std::vector<WriterFold>& folds) {
  std::vector<TrialId> trials;
  for (const WriterFold& fold : folds) trials.push_back(fold.trial_id);
  return BookScope::Of(std::move(trials));
}

}  // namespace

absl::StatusOr<std::unique_ptr<PgFoldStore>> PgFoldStore::Open(
    const Options& options, std::shared_ptr<JournalRing> journal) {
  std::unique_ptr<PgFoldStore> store(new PgFoldStore(options, std::move(journal)));
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, store->link_.Get());
  STEPWELL_RETURN_IF_ERROR(
      Annotate(store->recycler_.Start(*connection, store->look_), "read the segments of recent"));
  return store;
}

PgFoldStore::PgFoldStore(const Options& options, std::shared_ptr<JournalRing> journal)
    : journal_(std::move(journal)),
      book_changes_(options.book_changes),
      place_(options.owned_place),
      number_shelf_(ConnectionOptions(options, "stepwell-numbers"), 1),
      link_(FoldOptions(options)),
      ring_(options.recent),
      rollup_ring_(leaves_),
      analyzer_(ConnectionOptions(options, "stepwell-analyze")),
      folder_(link_, ring_, groups_, rollup_ring_, leaves_, analyzer_.growth(), options.bulk_ticks),
      merger_(link_, ring_, rollup_ring_, groups_, leaves_, analyzer_.growth(),
              book_changes_.get()),
      recycler_(ring_, ConnectionOptions(options, "stepwell-vacuum")) {}

absl::StatusOr<PgConnection*> PgFoldStore::ConnectionOf(std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link_.Get());
  STEPWELL_RETURN_IF_ERROR(
      Annotate(place_.Check(*connection, link_.opened_count(), owner_epoch), "fold"));
  if (owner_epoch == ring_epoch_) return connection;
  STEPWELL_RETURN_IF_ERROR(
      Annotate(recycler_.Start(*connection, look_), "read the segments of recent"));
  merger_.Forget();
  look_ = PgRecentRecycler::Look::kQuick;
  ring_epoch_ = owner_epoch;
  return connection;
}

void PgFoldStore::LookIfUnreadable(const absl::Status& status) {
  if (!IsUnreadable(status)) return;
  look_ = PgRecentRecycler::Look::kWhole;
  ring_epoch_ = 0;
}

template <typename Work>
auto PgFoldStore::FoldBy(std::int64_t owner_epoch, const std::vector<WriterFold>& folds,
                         const Work& work) -> decltype(work()) {
  STEPWELL_RETURN_IF_ERROR(ConnectionOf(owner_epoch).status());
  auto folded = ChangeBook(book_changes_.get(), TrialsOf(folds), work);
  LookIfUnreadable(folded.status());
  return folded;
}

absl::StatusOr<FoldResult> PgFoldStore::Fold(std::int64_t owner_epoch,
                                             const std::vector<WriterFold>& folds) {
  return FoldBy(owner_epoch, folds, [&] { return folder_.Fold(owner_epoch, folds); });
}

absl::StatusOr<std::optional<FoldResult>> PgFoldStore::FoldBulk(
    std::int64_t owner_epoch, const std::vector<WriterFold>& folds, std::int32_t first_open_day) {
  const bool is_half_way = std::any_of(folds.begin(), folds.end(), [&](const WriterFold& fold) {
    return merger_.IsWithin(fold.trial_id);
  });
  if (is_half_way) return std::nullopt;
  return FoldBy(owner_epoch, folds,
                [&] { return folder_.FoldBulk(owner_epoch, folds, first_open_day); });
}

absl::StatusOr<MergeResult> PgFoldStore::Merge(std::int64_t owner_epoch,
                                               const MergeLimits& limits) {
  STEPWELL_RETURN_IF_ERROR(ConnectionOf(owner_epoch).status());
  auto merged = merger_.Merge(owner_epoch, limits);
  LookIfUnreadable(merged.status());
  return merged;
}

absl::StatusOr<FoldNo> PgFoldStore::NextFoldNo() {
  STEPWELL_ASSIGN_OR_RETURN(const PgShelf::Loan connection, number_shelf_.Borrow());
  STEPWELL_ASSIGN_OR_RETURN(const PgResult row, connection->Exec(sql::kNextFoldNo));
  return FoldNo{row.Int64(0, 0)};
}

absl::Status PgFoldStore::AttachLeaves(std::int64_t now_us) {
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link_.Get());
  return leaves_.AttachAround(*connection, now_us);
}

absl::Status PgFoldStore::RecycleJournal(std::int64_t owner_epoch,
                                         std::int64_t all_folded_before_us) {
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, link_.Get());
  absl::Status failed;
  for (const int segment : journal_->Recyclable(all_folded_before_us)) {
    const auto truncated = TruncateIfFolded(*connection, segment, owner_epoch);
    if (IsUnreadable(truncated.status())) {
      LogDamagedSegment(segment, truncated.status());
      journal_->NoteDamaged(segment);
      continue;
    }
    if (absl::IsAborted(truncated.status())) return truncated.status();
    if (truncated.ok() && *truncated) journal_->NoteTruncated(segment);
    if (truncated.ok()) continue;
    // One that cannot be looked through keeps no other, nor commits in one that is full.
    failed.Update(Annotate(truncated.status(), absl::StrCat("journal segment ", segment)));
    if (absl::StatusOr<PgConnection*> next = link_.Get(); next.ok()) {
      connection = *next;
    } else {
      break;
    }
  }
  const std::int64_t now_us = absl::ToUnixMicros(absl::Now());
  if (journal_->AdvanceIfFull(now_us)) return failed;
  log::Warning("journal_ring_full", {{"current", journal_->current()}});
  // A disk may answer again.
  for (const int segment : journal_->Damaged()) {
    STEPWELL_ASSIGN_OR_RETURN(const JournalSegment found, ReadJournalSegment(*connection, segment));
    journal_->NoteFound(segment, found, now_us);
  }
  return failed;
}

absl::Status PgFoldStore::RecycleRecent(std::int64_t owner_epoch) {
  STEPWELL_ASSIGN_OR_RETURN(PgConnection * connection, ConnectionOf(owner_epoch));
  analyzer_.Run();
  const std::int64_t now_us = absl::ToUnixMicros(absl::Now());
  const absl::Status recycled = recycler_.Recycle(*connection, owner_epoch, now_us);
  LookIfUnreadable(recycled);
  STEPWELL_RETURN_IF_ERROR(Annotate(recycled, "recycle recent"));
  return Annotate(rollup_ring_.Recycle(*connection, owner_epoch, DayOf(now_us)), "recycle rollups");
}

}  // namespace stepwell
