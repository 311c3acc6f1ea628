// FakeIngestStore: IngestStore in memory, for tests of what stands above it. It keeps the contract:
// tests/contract/ingest_store_contract_test.cc runs on it and on PgIngestStore. Thread-safe.
//
//   FakeIngestStore store;
//   store.FailNext(absl::UnavailableError("down"));      // the next Commit stores nothing
//   store.set_block_commits(true);                        // commits wait until it is false again
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "storage/gap_ledger.h"
#include "storage/ingest_store.h"

namespace stepwell::testing {

class FakeIngestStore final : public IngestStore {
 public:
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
  std::uint64_t commits_in_doubt() const override;
  absl::StatusOr<std::vector<WriterProgress>> ReadProgress(
      TrialId trial_id, absl::Span<const WriterNo> writers) override;
  absl::StatusOr<TrialWriters> ReadTrialWriters(TrialId trial_id) override;
  absl::Status SetTrialState(TrialId trial_id, TrialState state, std::int64_t owner_epoch) override;
  absl::StatusOr<TrialProfiling> SetProfiling(TrialId trial_id, const TrialProfiling& wanted,
                                              std::int64_t owner_epoch) override;

  // --- what only tests do ---

  // The next Commit answers this and stores nothing.
  void FailNext(absl::Status status);
  // Until it is given another: a Commit for which `judge` finds no OK answers that and stores nothing.
  void FailWhere(std::function<absl::Status(const CommitGroupRequest&)> judge) {
    absl::MutexLock lock(&mu_);
    judge_ = std::move(judge);
  }
  // The next Commit stores everything and answers this all the same, as a COMMIT in doubt does.
  void FailNextAfterStoring(absl::Status status);
  void set_block_commits(bool block);
  // At the begin of the next Commit, without a lock held: what others do meanwhile.
  void OnNextCommit(std::function<void()> act);
  int commit_count() const;
  // A trial has room for fewer series than the master asks for.
  void set_series_max(int series_max);
  // The next `count` calls of FindOrCreateSeries answer kUnavailable.
  void KeepSeriesBusy(int count);
  // At the begin of the next FindOrCreateSeries, without a lock held.
  void OnNextSeries(std::function<void()> act) {
    absl::MutexLock lock(&mu_);
    on_next_series_ = std::move(act);
  }
  // Calls of FindOrCreateSeries.
  int series_calls() const {
    absl::MutexLock lock(&mu_);
    return series_calls_;
  }
  // Calls of ReadProgress and ReadTrialWriters.
  int writer_reads() const;
  // As a fold would.
  void SetFolded(TrialId trial_id, WriterNo writer_no, std::uint64_t folded_sequence);
  std::vector<Gap> gaps(TrialId trial_id) const;
  int series_count(TrialId trial_id) const {
    absl::MutexLock lock(&mu_);
    return static_cast<int>(tables_.trials.at(trial_id).series.size());
  }
  TrialState trial_state(TrialId trial_id) const;
  // As if it were deleted, with all that is of it.
  void DropTrial(TrialId trial_id);
  // As where PostgreSQL says that the database is another one.
  void RenewIncarnation();
  // All that lies in the database, as a backup of its files has it, and all of it put in the place of what is there.
  struct Backup;
  std::shared_ptr<const Backup> BackUp() const;
  void PutBack(const Backup& backup);
  // The next owner's look at the database answers this; its row is written all the same.
  void FailNextLook(absl::Status status);
  // Calls of AcquireOwnership.
  int ownership_calls() const {
    absl::MutexLock lock(&mu_);
    return ownership_calls_;
  }
  // Changes what a replay will read of a commit, oldest first.
  void ChangeJournal(std::size_t row, const std::function<void(JournalRow&)>& change);

 private:
  using WriterKey = std::pair<TrialId, WriterNo>;
  struct Writer {
    WriterProgress progress;
    Uuid uuid;
    std::int32_t attempt = 0;
    std::uint32_t last_crc32c = 0;
  };
  struct Trial {
    std::int64_t owner_epoch = 0;
    TrialState state = TrialState::kRunning;
    TrialProfiling profiling;
    std::vector<std::string> attempt_keys;  // of attempts 1, 2, ...
    std::vector<Series> series;
    std::map<Uuid, WriterNo> writer_nos;
  };

  // Every table.
  struct Tables {
    Uuid incarnation = Uuid::Random();
    std::map<TrialId, Trial> trials;
    std::map<std::pair<std::string, std::string>, TrialId> trial_names;
    std::map<WriterKey, Writer> writers;
    std::vector<JournalRow> journal;
    std::map<std::int64_t, GapChange> gaps;  // by gap_no
    std::int64_t next_trial_id = 1'000'000'000;
    Ownership owner;
    absl::Time renewed_time;
  };

  void ActBeforeCommit() ABSL_LOCKS_EXCLUDED(mu_);
  void ActBeforeSeries() ABSL_LOCKS_EXCLUDED(mu_) {
    std::function<void()> act;
    {
      absl::MutexLock lock(&mu_);
      act = std::exchange(on_next_series_, nullptr);
    }
    if (act) act();
  }
  Trial* FindOrCreateTrialLocked(const OpenWriterRequest& request, TrialId& trial_id)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool LetsThroughLocked(const OpenWriterRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::int32_t AttemptLocked(Trial& trial, const OpenWriterRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  AdvanceResult AdvanceLocked(const WriterAdvance& advance) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteGapLocked(TrialId trial_id, const Gap& gap) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AppendJournalLocked(const CommitGroupRequest& request,
                           const std::vector<AdvanceResult>& results)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckOwnerLocked(const CommitGroupRequest& request) const
      ABSL_SHARED_LOCKS_REQUIRED(mu_);

  mutable absl::Mutex mu_;
  Tables tables_ ABSL_GUARDED_BY(mu_);
  absl::Status next_look_ ABSL_GUARDED_BY(mu_) = absl::OkStatus();
  std::function<absl::Status(const CommitGroupRequest&)> judge_ ABSL_GUARDED_BY(mu_);
  absl::Status fail_next_ ABSL_GUARDED_BY(mu_);
  absl::Status fail_after_ ABSL_GUARDED_BY(mu_);
  std::uint64_t commits_in_doubt_ ABSL_GUARDED_BY(mu_) = 0;
  bool block_commits_ ABSL_GUARDED_BY(mu_) = false;
  std::function<void()> on_next_commit_ ABSL_GUARDED_BY(mu_);
  std::function<void()> on_next_series_ ABSL_GUARDED_BY(mu_);
  int commit_count_ ABSL_GUARDED_BY(mu_) = 0;
  int ownership_calls_ ABSL_GUARDED_BY(mu_) = 0;
  int series_max_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int>::max();
  int series_busy_ ABSL_GUARDED_BY(mu_) = 0;
  int series_calls_ ABSL_GUARDED_BY(mu_) = 0;
  int writer_reads_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace stepwell::testing
