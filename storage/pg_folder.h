// PgFolder: writes heads as rows of recent, and of a trial that comes in bulk as rows of leaves (PgBulkWriter).
// What is to be written is planned, encoded and laid out before the transaction begins, and the writers' rows are
// touched last, so that commits of the same writers hardly ever wait for a fold. A chunk that PostgreSQL refuses is found by halving, given up
// and declared as a gap, so that it cannot hold up all others. Confined to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "storage/fold_plan.h"
#include "storage/fold_store.h"
#include "storage/pg_bulk_writer.h"
#include "storage/pg_link.h"
#include "storage/pg_row_copy.h"
#include "storage/recent_ring.h"
#include "storage/series_groups.h"
#include "storage/usage_ledger.h"

namespace stepwell {

// tick_no = fold_no * kTicksPerFoldNo + index: unique in the database. A fold of more rows of ticks
// takes several numbers; its rows all carry the last of them.
inline constexpr std::int64_t kTicksPerFoldNo = 65536;

// `count` numbers, ascending. REQUIRES: count > 0.
absl::StatusOr<std::vector<std::int64_t>> NextFoldNumbers(PgConnection& connection,
                                                          std::int64_t count);

class PgFolder {
 public:
  // All outlive this.
  PgFolder(PgLink& link, RecentRing& ring, SeriesGroups& groups, PgRollupRing& rollup_ring,
           PgLeaves& leaves, LeafGrowth& growth, std::size_t bulk_ticks)
      : link_(link),
        ring_(ring),
        groups_(groups),
        bulk_ticks_(bulk_ticks),
        bulk_(rollup_ring, groups, leaves, growth) {}

  // As FoldStore::Fold.
  absl::StatusOr<FoldResult> Fold(std::int64_t owner_epoch, const std::vector<WriterFold>& folds);
  // As FoldStore::FoldBulk. REQUIRES: no merge is in the middle of the trial's series.
  absl::StatusOr<std::optional<FoldResult>> FoldBulk(std::int64_t owner_epoch,
                                                     const std::vector<WriterFold>& folds,
                                                     std::int32_t first_open_day);

 private:
  struct Draft;  // a fold, laid out
  absl::Status FoldOrHalve(std::int64_t owner_epoch, const std::vector<WriterFold>& folds,
                           FoldResult& total);
  absl::Status FoldGivenUp(std::int64_t owner_epoch, const WriterFold& fold,
                           const absl::Status& why, FoldResult& total);
  // What goes into leaves; then all is of one trial.
  struct Bulk {
    std::size_t ticks = kNoBulk;
    std::int32_t first_open_day = 0;
  };
  // One transaction.
  absl::StatusOr<FoldResult> FoldOnce(std::int64_t owner_epoch,
                                      const std::vector<WriterFold>& folds, Bulk bulk);
  absl::StatusOr<Draft> Lay(PgConnection& connection, const std::vector<WriterFold>& folds,
                            Bulk bulk);
  // Writes nothing where it finds trials that were deleted, and answers them.
  absl::StatusOr<std::vector<std::int64_t>> Write(PgConnection& connection,
                                                  std::int64_t owner_epoch,
                                                  const std::vector<WriterFold>& folds,
                                                  Draft& draft);
  absl::StatusOr<FoldResult> ReadBack(const std::vector<WriterFold>& folds, const Draft& draft);
  void NoteWritten(const Draft& draft);
  bool Rests(TrialId trial_id);

  PgLink& link_;
  RecentRing& ring_;
  SeriesGroups& groups_;
  const std::size_t bulk_ticks_;
  PgBulkWriter bulk_;
  // Trials whose bulk was refused, until when recent takes it: what refused it may be mended by then. Bounded.
  absl::flat_hash_map<TrialId, SteadyTime> rest_until_;
};

}  // namespace stepwell
