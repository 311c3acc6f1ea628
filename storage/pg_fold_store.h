// PgFoldStore: FoldStore on PostgreSQL, on a connection of its own and one that gives fold numbers.
// It holds what folds and merges remember between calls: the ring of recent, the groups of series,
// the known leaves; the first call under a new owner_epoch reads the ring anew, since another master
// may have turned it. Confined to one thread at a time but for NextFoldNo; beside it commits go on
// (PgIngestStore), with which it shares the journal's ring.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto store, PgFoldStore::Open({.url = url}, ring));
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "storage/book_changes.h"
#include "storage/fold_store.h"
#include "storage/journal_ring.h"
#include "storage/pg_folder.h"
#include "storage/pg_leaf_analyzer.h"
#include "storage/pg_leaves.h"
#include "storage/pg_link.h"
#include "storage/pg_merger.h"
#include "storage/pg_recent_recycler.h"
#include "storage/pg_rollup_ring.h"
#include "storage/pg_session_place.h"
#include "storage/pg_shelf.h"

namespace stepwell {

class PgFoldStore final : public FoldStore {
 public:
  struct Options {
    std::string url;
    // A stopped master lets go of its locks after this.
    absl::Duration idle_in_transaction_timeout = absl::Seconds(10);
    RecentRing::Limits recent = {};
    // What FoldBulk takes for bulk.
    std::size_t bulk_ticks = kBulkTicks;
    // Of all its connections; null = none.
    std::shared_ptr<const PgCut> cut = nullptr;
    // Told what changes books; null = nobody remembers any.
    std::shared_ptr<BookChanges> book_changes = nullptr;
    // With PgIngestStore, which notes there; null: where the database lies is not compared.
    std::shared_ptr<const OwnedPlace> owned_place = nullptr;
  };

  // Reads what the ring of recent holds. Segments with a page that cannot be read are left as they are. REQUIRES: the schema is migrated.
  static absl::StatusOr<std::unique_ptr<PgFoldStore>> Open(const Options& options,
                                                           std::shared_ptr<JournalRing> journal);

  absl::StatusOr<FoldResult> Fold(std::int64_t owner_epoch,
                                  const std::vector<WriterFold>& folds) override;
  absl::StatusOr<std::optional<FoldResult>> FoldBulk(std::int64_t owner_epoch,
                                                     const std::vector<WriterFold>& folds,
                                                     std::int32_t first_open_day) override;
  absl::StatusOr<MergeResult> Merge(std::int64_t owner_epoch, const MergeLimits& limits) override;
  absl::StatusOr<FoldNo> NextFoldNo() override;
  absl::Status AttachLeaves(std::int64_t now_us) override;
  absl::Status RecycleJournal(std::int64_t owner_epoch, std::int64_t all_folded_before_us) override;
  absl::Status RecycleRecent(std::int64_t owner_epoch) override;

 private:
  // Once this ownership's rings are known; what `work` answers.
  template <typename Work>
  auto FoldBy(std::int64_t owner_epoch, const std::vector<WriterFold>& folds, const Work& work)
      -> decltype(work());
  // The connection, once what is remembered is of this ownership.
  absl::StatusOr<PgConnection*> ConnectionOf(std::int64_t owner_epoch);
  // Where something could not be read, the next call looks where in the ring that is.
  void LookIfUnreadable(const absl::Status& status);
  PgFoldStore(const Options& options, std::shared_ptr<JournalRing> journal);

  const std::shared_ptr<JournalRing> journal_;  // with PgIngestStore
  const std::shared_ptr<BookChanges> book_changes_;
  PgSessionPlace place_;
  PgShelf number_shelf_;
  PgLink link_;
  std::int64_t ring_epoch_ = 0;  // the ownership under which ring_ was read; 0 = it is read anew
  PgRecentRecycler::Look look_ =
      PgRecentRecycler::Look::kQuick;  // at the next time that it is read
  RecentRing ring_;
  SeriesGroups groups_;
  PgLeaves leaves_;
  PgRollupRing rollup_ring_;
  PgLeafAnalyzer analyzer_;
  PgFolder folder_;
  PgMerger merger_;
  PgRecentRecycler recycler_;
};

}  // namespace stepwell
