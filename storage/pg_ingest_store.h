// PgIngestStore: IngestStore on PostgreSQL. Commit has a connection of its own (PgWriter), renewals
// of the ownership another, everything else borrows one of a few. Commit, FenceTrials and
// ReadUnfoldedJournal are confined to one thread at a time, the rest is thread-safe.
//
//   auto ring = std::make_shared<JournalRing>();
//   STEPWELL_ASSIGN_OR_RETURN(auto store, PgIngestStore::Open({.url = url}, ring));
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/book_changes.h"
#include "storage/call_groups.h"
#include "storage/ingest_store.h"
#include "storage/journal_ring.h"
#include "storage/owned_place.h"
#include "storage/pg_incarnation.h"
#include "storage/pg_shelf.h"
#include "storage/pg_writer.h"
#include "storage/refusal_rest.h"
#include "storage/turn_rest.h"

namespace stepwell {

class PgIngestStore final : public IngestStore {
 public:
  struct Options {
    std::string url;
    int control_connections_max = 4;
    // A stopped master lets go of its locks after this; a take-over may wait for it.
    absl::Duration idle_in_transaction_timeout = absl::Seconds(10);
    // One that is stopped in the middle of a COPY does not (PgStoppedCopies): a take-over ends what has copied for so long. Far
    // above what a COPY takes, and below what an owner is waited for.
    absl::Duration stopped_copy_age = absl::Seconds(5);
    absl::Duration read_back_timeout = absl::Seconds(15);
    // Of all its connections; null = none.
    std::shared_ptr<const PgCut> cut = nullptr;
    // Told what changes books; null = nobody remembers any.
    std::shared_ptr<BookChanges> book_changes = nullptr;
    // Told where the database lay as it was taken; null: sessions do not compare.
    std::shared_ptr<OwnedPlace> owned_place = nullptr;
    // For tests, see PgWriter.
    std::function<void(std::string_view point, int backend_pid)> at_point = nullptr;
  };

  // Reads what the journal holds. REQUIRES: the schema is migrated.
  static absl::StatusOr<std::unique_ptr<PgIngestStore>> Open(const Options& options,
                                                             std::shared_ptr<JournalRing> ring);

  absl::StatusOr<Ownership> AcquireOwnership(const OwnerClaim& claim) override;
  absl::Status ReleaseOwnership(const std::string& master_id, std::int64_t epoch) override;
  absl::Status FenceTrials(std::int64_t epoch) override;
  absl::StatusOr<std::vector<WriterProgress>> ReadWriters() override;
  absl::Status ReadUnfoldedJournal(const std::function<absl::Status(JournalRow)>& row) override;
  absl::StatusOr<Uuid> ReadIncarnation() override;
  absl::StatusOr<OpenedWriter> OpenWriter(const OpenWriterRequest& request) override;
  absl::StatusOr<std::vector<SeriesNo>> FindOrCreateSeries(
      TrialId trial_id, absl::Span<const SeriesDefinition> definitions, int series_max,
      std::int64_t* created = nullptr) override;
  absl::StatusOr<std::vector<AdvanceResult>> Commit(const CommitGroupRequest& request) override;
  std::uint64_t commits_in_doubt() const override { return writer_.commits_in_doubt(); }
  absl::StatusOr<std::vector<WriterProgress>> ReadProgress(
      TrialId trial_id, absl::Span<const WriterNo> writers) override;
  absl::StatusOr<TrialWriters> ReadTrialWriters(TrialId trial_id) override;
  absl::Status SetTrialState(TrialId trial_id, TrialState state, std::int64_t owner_epoch) override;
  absl::StatusOr<TrialProfiling> SetProfiling(TrialId trial_id, const TrialProfiling& wanted,
                                              std::int64_t owner_epoch) override;

 private:
  PgIngestStore(const Options& options, PgConnection::Options connection,
                std::shared_ptr<JournalRing> ring);
  absl::Status ReadRing();
  // Opens of one trial that come at one time share a transaction, and so do a few definitions each
  // (pg_ingest_store_writers.cc).
  struct OpenCall;
  struct SeriesCall;
  using TrialName = std::tuple<std::int64_t, std::string, std::string>;
  using Opens = CallGroups<TrialName, OpenCall>;
  using SeriesCalls = CallGroups<TrialId, SeriesCall>;
  static Opens::Options OpensTogether();
  static SeriesCalls::Options SeriesTogether();
  void OpenAll(PgConnection& connection, std::span<OpenCall* const> calls);
  void FindSeriesOfAll(PgConnection& connection, TrialId trial_id,
                       std::span<SeriesCall* const> calls);
  absl::StatusOr<std::vector<SeriesNo>> FindManySeries(
      TrialId trial_id, absl::Span<const SeriesDefinition> definitions, int series_max,
      std::int64_t& created);
  // One turn of it.
  void FindSeriesInTurn(TrialId trial_id, SeriesCall& call);

  const std::shared_ptr<JournalRing> ring_;  // with PgFoldStore
  const std::shared_ptr<BookChanges> book_changes_;
  const std::shared_ptr<OwnedPlace> owned_place_;
  const absl::Duration stopped_copy_age_;
  PgWriter writer_;
  PgShelf shelf_;
  // Of many series at once, in turns with rests: a flood of new series takes a third of a processor, and holds none of
  // the connections on which others open their writers.
  PgShelf many_series_shelf_;
  TurnRest many_series_rest_;  // for whoever has that shelf's one connection
  Opens opens_;
  SeriesCalls few_series_;
  // Turns of one trial wait in a line of their own, so that a flood of it has one place among those of others.
  SeriesCalls many_series_;
  // Of trials that are full, few or many at once.
  RefusalRest refusal_rest_;
  // One renewal at a time, and never behind other work: with a shelf of its own.
  PgShelf owner_shelf_;
  PgIncarnation incarnation_;  // for whoever has that shelf's one connection
};

}  // namespace stepwell
