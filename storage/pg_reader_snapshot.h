// PgReaderSnapshot: one read-only transaction of PgReader. It begins with its first statement, in the
// same round trip. Confined to one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "storage/known_book.h"
#include "storage/pg_read_link.h"
#include "storage/pg_read_memory.h"
#include "storage/read_store.h"

namespace stepwell {

class PgReaderSnapshot final : public ReadSnapshot {
 public:
  // A transaction on `loan`; nothing is asked in it after `deadline` (PgReadLink::Begin). `known`: a book that it need
  // not read where it holds. The others outlive it.
  static absl::StatusOr<std::unique_ptr<PgReaderSnapshot>> Begin(
      PgShelf::Loan loan, const ReadWatch& watch, PgReadMemory& memory, SteadyTime deadline,
      std::optional<KnownBook> known = std::nullopt);

  void Heed(std::function<bool()> cancelled) override { link_.Heed(std::move(cancelled)); }
  void ExpectBook(TrialId trial_id, const GapFilter& gaps) override;
  [[nodiscard]] std::optional<PresumedBook> PresumeBook(TrialId trial_id) override;
  [[nodiscard]] absl::StatusOr<bool> ConfirmBook(TrialId trial_id) override;
  [[nodiscard]] absl::StatusOr<TrialRecord> ReadTrial(TrialId trial_id) override;
  [[nodiscard]] absl::StatusOr<TrialList> ListTrials(const TrialPage& page) override;
  [[nodiscard]] absl::StatusOr<std::vector<WriterRecord>> ListWriters(TrialId trial_id) override;
  [[nodiscard]] absl::StatusOr<std::optional<std::int64_t>> ReadAttemptCreated(
      TrialId trial_id, std::int32_t attempt) override;
  [[nodiscard]] absl::StatusOr<std::vector<Series>> ListSeries(TrialId trial_id,
                                                               const SeriesSelection& selection,
                                                               SeriesNo after,
                                                               std::int32_t limit) override;
  [[nodiscard]] absl::StatusOr<std::shared_ptr<const std::vector<Series>>> ReadAllSeries(
      TrialId trial_id, std::int32_t series_count, const ListRoom& room) override;
  [[nodiscard]] absl::StatusOr<GapList> ReadGaps(TrialId trial_id,
                                                 const GapFilter& filter) override;
  [[nodiscard]] absl::StatusOr<std::vector<UsageRecord>> ReadUsage(TrialId trial_id) override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<RowCursor>> ReadRows(
      const RowFilter& filter) override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<RollupCursor>> ReadRollups(
      const RollupFilter& filter) override;
  [[nodiscard]] absl::StatusOr<std::vector<WriterBatches>> ReadBatchSpans(
      TrialId trial_id, FoldNo fold_no_max) override;
  [[nodiscard]] absl::StatusOr<std::vector<BatchesAround>> ReadBatchesAround(
      TrialId trial_id, const std::vector<WriterStretch>& stretches, FoldNo fold_no_max) override;
  [[nodiscard]] absl::StatusOr<std::vector<StoredLatest>> ReadLatest(
      TrialId trial_id, const std::vector<std::int32_t>& series_nos, FoldNo fold_no_max) override;

 private:
  // Answers that are on their way; 0 = taken, or never asked.
  struct Book {
    PgReadLink::Ticket trial = 0;
    PgReadLink::Ticket writers = 0;
    PgReadLink::Ticket usage = 0;
    PgReadLink::Ticket gaps = 0;
    GapFilter gap_filter = {};
  };
  struct GapSums {
    std::int64_t missing_sample_count = 0;
    bool samples_missing = false;
  };

  // A ledger that may be another snapshot's, and what was looked for by it.
  struct Presumed {
    struct Pick {
      std::int64_t start_us;
      std::int64_t end_us;
      LeafRows rows;
    };
    PgReadMemory::Usage usage;
    std::vector<Pick> picks;
  };

  PgReaderSnapshot(PgShelf::Loan loan, const ReadWatch& watch, PgReadMemory& memory)
      : link_(std::move(loan), watch, memory), memory_(memory) {}
  // The trial's book where one is known and holds at the snapshot's moment; null = it must be read.
  absl::StatusOr<const TrialBook*> KnownBookOf(TrialId trial_id);
  PgReadLink::Ticket AskTrial(TrialId trial_id);
  PgReadLink::Ticket AskWriters(TrialId trial_id);
  PgReadLink::Ticket AskUsage(TrialId trial_id);
  PgReadLink::Ticket AskGaps(TrialId trial_id, const GapFilter& filter);

  absl::StatusOr<PgReadMemory::AllSeries> ReadSeriesBeyond(TrialId trial_id, std::size_t wanted,
                                                           const PgReadMemory::AllSeries& known,
                                                           const ListRoom& room);
  absl::StatusOr<PgReadMemory::Usage> UsageOf(TrialId trial_id);
  LookBack LookBackOf(TrialId trial_id, const std::vector<std::int32_t>& series_nos,
                      std::int64_t start_us) const;
  // That to pick leaves by.
  absl::StatusOr<PgReadMemory::Usage> UsageFor(TrialId trial_id, const Presumed::Pick& pick);

  PgReadLink link_;
  PgReadMemory& memory_;
  std::optional<KnownBook> known_;
  // Who owns the database, asked for known_; 0 = it was told, and known_ holds.
  PgReadLink::Ticket owner_ = 0;
  std::map<TrialId, Book> books_;
  // Read once each: a snapshot does not change.
  std::map<TrialId, PgReadMemory::Usage> usage_;
  std::map<TrialId, GapSums> gap_sums_;
  std::map<TrialId, Presumed> presumed_;
};

}  // namespace stepwell
