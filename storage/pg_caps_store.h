// PgCapsStore: CapsStore on PostgreSQL, on a few connections of its own. It stands beside PgIngestStore and
// PgFoldStore; they meet in the database alone. Thread-safe.
//
//   PgCapsStore store({.url = url});
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "storage/book_changes.h"
#include "storage/caps_store.h"
#include "storage/pg_shelf.h"
#include "storage/pg_sweeper.h"

namespace stepwell {

class PgCapsStore final : public CapsStore {
 public:
  struct Options {
    std::string url;
    int connections_max = 3;
    // A stopped master lets go of its locks after this.
    absl::Duration idle_in_transaction_timeout = absl::Seconds(10);
    // Of all its connections; null = none.
    std::shared_ptr<const PgCut> cut = nullptr;
    // Told what changes books; null = nobody remembers any.
    std::shared_ptr<BookChanges> book_changes = nullptr;
  };
  // Connects at the first call. REQUIRES: the schema is migrated.
  explicit PgCapsStore(const Options& options);

  absl::StatusOr<CapsReport> Get(const CapsTarget& target, const ProjectFilter& projects) override;
  absl::StatusOr<CapsReport> Set(std::int64_t owner_epoch, const CapsTarget& target,
                                 const ProjectFilter& projects, const Caps& caps,
                                 const std::vector<std::string>& clear) override;
  absl::StatusOr<CapRemovals> Preview(const PreviewRequest& request,
                                      const ProjectFilter& projects) override;
  absl::StatusOr<SweepResult> Sweep(std::int64_t owner_epoch, const SweepRequest& request,
                                    const ProjectFilter& projects) override;
  absl::StatusOr<ArchivedTrial> Archive(std::int64_t owner_epoch, const TrialSelector& trial,
                                        const ProjectFilter& projects, bool archived) override;
  absl::StatusOr<DeletedTrial> Delete(std::int64_t owner_epoch, const TrialSelector& trial,
                                      const ProjectFilter& projects) override;
  absl::StatusOr<TrialCaps> ReadTrialCaps(TrialId trial_id) override;
  absl::Status NoteWindowOver(std::int64_t owner_epoch, TrialId trial_id,
                              std::int64_t end_us) override;

 private:
  // False: somebody sweeps.
  bool TryBeginSweeping() ABSL_LOCKS_EXCLUDED(mu_);
  void EndSweeping() ABSL_LOCKS_EXCLUDED(mu_);

  PgShelf shelf_;
  const std::shared_ptr<BookChanges> book_changes_;
  absl::Mutex mu_;
  bool is_sweeping_ ABSL_GUARDED_BY(mu_) = false;
  PgSweeper sweeper_;  // of whoever set is_sweeping_
};

}  // namespace stepwell
