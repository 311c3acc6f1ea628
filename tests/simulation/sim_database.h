// SimDatabase: the database of a simulated run: it outlives every master, can be away, and can lose an
// answer. The rules of exactly-once in it are the real ones (storage/advance_rules), the rest is the
// store in memory of tests/fakes. SimStore is one master's connection to it: the world goes on while a
// COMMIT is under way, and a master that is killed meanwhile does not come back from the call.
// Confined to the run.
//
//   SimStore store(database, [&] { world.Meanwhile(); }, killed);
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/heads.h"
#include "storage/ingest_store.h"
#include "tests/fakes/fake_ingest_store.h"
#include "tests/simulation/chance.h"
#include "tests/simulation/history.h"
#include "tests/simulation/trace.h"

namespace stepwell::simulation {

class SimDatabase {
 public:
  // All outlive this.
  SimDatabase(Chance& chance, History& history, Trace& trace)
      : chance_(chance), history_(history), trace_(trace) {}

  void set_down(bool down) { down_ = down; }
  bool down() const { return down_; }
  // Of commits: refused before anything is stored; stored, and the answer lost.
  void set_trouble(double refused, double answer_lost) {
    refused_ = refused;
    answer_lost_ = answer_lost;
  }

  testing::FakeIngestStore& store() { return store_; }
  absl::Status CheckUp() const;
  // The owner's.
  std::int64_t newest_epoch() const { return newest_epoch_; }
  // What it holds is wrong.
  void Fail(std::string what) { history_.Fail(std::move(what)); }

  absl::StatusOr<std::vector<AdvanceResult>> Commit(const CommitGroupRequest& request);
  // Whether the answer to what was just stored is lost.
  bool LosesAnswer() { return chance_.Of(answer_lost_); }
  // As a fold's transaction: rows, and how far writers are folded.
  absl::Status Fold(std::int64_t owner_epoch, const std::vector<WriterFold>& folds);

  // A copy of all it holds is kept; it comes back in its place. False where none was kept. `is_noticed`: PostgreSQL
  // says that it is another one than before (a recovery to a point in time), and not of a copy of the files put back as it is.
  void Keep();
  bool PutBack(bool is_noticed);

  // Of the writers that each rank had.
  std::map<int, Declared> DeclaredByRank() const;

 private:
  struct Writer {
    Uuid uuid;
    int rank = 0;
    std::uint64_t folded_sequence = 0;
  };
  friend class SimStore;
  void NoteCommitted(const WriterAdvance& advance);
  void NoteOpened(const OpenWriterRequest& request, const OpenedWriter& opened);

  Chance& chance_;
  History& history_;
  Trace& trace_;
  testing::FakeIngestStore store_;
  bool down_ = false;
  double refused_ = 0;
  double answer_lost_ = 0;
  std::int64_t newest_epoch_ = 0;
  using Writers = std::map<std::pair<TrialId, WriterNo>, Writer>;
  Writers writers_;

  std::int64_t session_ = 0;  // of all: another number after all have ended
  std::int64_t place_ = 0;    // as PostgreSQL tells where it lies

  std::shared_ptr<const testing::FakeIngestStore::Backup> kept_;
  Writers kept_writers_;
  std::int64_t kept_epoch_ = 0;
};

// Thrown through a master that is killed while it waits for its database.
struct MasterKilled {};

class SimStore final : public IngestStore {
 public:
  // All outlive this. `meanwhile`: others act.
  SimStore(SimDatabase& database, std::function<void()> meanwhile, const bool& killed)
      : database_(database), meanwhile_(std::move(meanwhile)), killed_(killed) {}

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
  std::uint64_t commits_in_doubt() const override { return 0; }
  absl::StatusOr<std::vector<WriterProgress>> ReadProgress(
      TrialId trial_id, absl::Span<const WriterNo> writers) override;
  absl::StatusOr<TrialWriters> ReadTrialWriters(TrialId trial_id) override;
  absl::Status SetTrialState(TrialId trial_id, TrialState state, std::int64_t owner_epoch) override;
  absl::StatusOr<TrialProfiling> SetProfiling(TrialId trial_id, const TrialProfiling& wanted,
                                              std::int64_t owner_epoch) override;

  // It is the database that was taken.
  bool is_in_its_place() const { return database_.place_ == owned_place_; }

 private:
  void GoOnMeanwhile();

  SimDatabase& database_;
  const std::function<void()> meanwhile_;
  const bool& killed_;
  std::int64_t owned_place_ = 0;  // as OwnedPlace
};

}  // namespace stepwell::simulation
