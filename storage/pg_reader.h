// PgReader: ReadStore on PostgreSQL. Each snapshot is one REPEATABLE READ READ ONLY transaction on
// a connection of a bounded shelf; rows come through a cursor, page by page, in binary form.
// Thread-safe; its snapshots are confined to one thread each.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/steady_time.h"
#include "storage/known_book.h"
#include "storage/owner_sight.h"
#include "storage/pg_read_link.h"
#include "storage/pg_read_memory.h"
#include "storage/pg_shelf.h"
#include "storage/read_store.h"

namespace stepwell {

class PgReader final : public ReadStore {
 public:
  struct Options {
    std::string url;
    // Reads at once; further ones wait for a connection.
    int connection_count_max = 8;
    // Of all its connections; null = none.
    std::shared_ptr<const PgCut> cut = nullptr;
    // Of all stores of this process; null = there may be others: no book is remembered.
    std::shared_ptr<const BookChanges> book_changes = nullptr;
    // How long an answer who owns the database serves those after it that come from memory alone (owner_sight.h).
    absl::Duration owner_kept = absl::ZeroDuration();
    // What it remembers.
    PgReadMemory::Options memory = {};
    // For tests; null = nobody looks.
    ReadWatch watch = nullptr;
    std::shared_ptr<std::atomic<std::int64_t>> round_trip_count = nullptr;
  };
  // Connects at the first read.
  explicit PgReader(Options options);

  // The database is another one: nothing that was read of it before counts any more.
  void Forget() { memory_.Clear(); }

  [[nodiscard]] std::optional<TrialId> KnownTrial(const TrialSelector& selector,
                                                  const ProjectFilter& projects) const override;
  [[nodiscard]] absl::StatusOr<TrialId> FindTrial(const TrialSelector& selector,
                                                  const ProjectFilter& projects,
                                                  SteadyTime deadline) override;
  [[nodiscard]] absl::StatusOr<bool> IsOwnedUnder(std::int64_t owner_epoch,
                                                  SteadyTime deadline) override;
  [[nodiscard]] absl::StatusOr<std::shared_ptr<const TrialBook>> ReadBook(
      TrialId trial_id, std::int64_t owner_epoch, SteadyTime deadline,
      const ListRoom& room) override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ReadSnapshot>> OpenSnapshot(
      SteadyTime deadline) override;
  [[nodiscard]] std::unique_ptr<ReadSnapshot> OpenRemembered(TrialId trial_id,
                                                             std::int64_t owner_epoch,
                                                             SteadyTime deadline) override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ReadSnapshot>> OpenToRemember(
      TrialId trial_id, std::int64_t owner_epoch, SteadyTime deadline) override;

 private:
  // The question who owns the database, on its way since `sent`.
  struct OwnerQuestion {
    std::unique_ptr<PgReadLink> link;
    OwnerSight::Moment sent;
  };
  // Sends it; without a link where it need not be asked, or no connection is ready for it.
  OwnerQuestion AskOwnerAhead(std::int64_t owner_epoch, SteadyTime deadline);
  bool NoteOwner(const PgResult& owner, std::int64_t owner_epoch, const OwnerSight::Moment& asked);
  // Whether what was read of the trial at `moment`, when the memory was of `age`, is what the database holds now.
  // `asked`: the question, if it was sent.
  absl::StatusOr<bool> Holds(TrialId trial_id, const ReadMoment& moment, std::int64_t age,
                             SteadyTime deadline, OwnerQuestion asked);
  absl::StatusOr<PgShelf::Loan> Borrow(absl::Duration patience);
  // What is remembered of the trial's book at `moment`, of a memory of `age`; none = nothing.
  std::optional<KnownBook> KnownBookOf(TrialId trial_id, const ReadMoment& moment,
                                       std::int64_t age);

  PgShelf shelf_;
  PgReadMemory memory_;
  const std::size_t remembered_bytes_max_;  // of one read
  OwnerSight sight_;
  const std::shared_ptr<const BookChanges> book_changes_;
  const ReadWatch watch_;
};

}  // namespace stepwell
