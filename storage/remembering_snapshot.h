// RememberingSnapshot: a snapshot that keeps, when it ends, what was read of one trial's book and of ranges of
// its series, for questions that come after it: what did not come to its end, or was found by a ledger that
// was presumed wrongly, is not kept.
// Confined to one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "storage/range_memory.h"
#include "storage/read_store.h"
#include "storage/trial_book.h"

namespace stepwell {

class RememberingSnapshot final : public ReadSnapshot {
 public:
  struct Kept {
    TrialId trial_id{};
    std::shared_ptr<const TrialBook> book = {};  // null = not all of it was read
    std::vector<std::pair<RangeKey, RangeMemory::Shared>> ranges = {};
  };
  using Keep = std::function<void(Kept kept)>;

  // Of reads with more rows than `range_bytes_max` nothing is kept.
  RememberingSnapshot(std::unique_ptr<ReadSnapshot> snapshot, TrialId trial_id, Keep keep,
                      std::size_t range_bytes_max = 64 << 20)
      : snapshot_(std::move(snapshot)),
        keep_(std::move(keep)),
        trial_id_(trial_id),
        range_bytes_max_(range_bytes_max) {}
  ~RememberingSnapshot() override;

  void Heed(std::function<bool()> cancelled) override { snapshot_->Heed(std::move(cancelled)); }
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
  class Rows;
  class Rollups;
  // Ranges that are being read, of series in order.
  struct Reading {
    RangeSource source = {};
    std::vector<std::int32_t> series_nos = {};
    std::vector<RememberedRange> ranges = {};  // one for each series
    std::size_t at = 0;
  };

  Reading Begin(const RangeSource& source, const std::vector<std::int32_t>& series_nos,
                std::int64_t start_us, std::int64_t end_us, FoldNo fold_no_max) const;
  // Of the row, and of its ticks where no row before had them: kept rows hold them.
  std::size_t NewBytesOf(const StoredRow& row);
  // The range of `series_no`; null = nothing is kept any more.
  RememberedRange* RangeOf(Reading& reading, SeriesNo series_no, std::size_t bytes);
  void End(Reading reading);
  void KeepAll();
  // As far as the ledger says where the trial's rows begin and end.
  void Widen(RememberedRange& range) const;

  const std::unique_ptr<ReadSnapshot> snapshot_;
  const Keep keep_;
  const TrialId trial_id_;
  const std::size_t range_bytes_max_;
  // True while rows are asked by a ledger that is presumed.
  bool is_presumed_ = false;
  std::size_t bytes_ = 0;                   // of all rows that were read, and their ticks
  absl::flat_hash_set<const void*> ticks_;  // that were counted; what is kept keeps them alive
  std::vector<Reading> read_;
  // What was read of the book.
  std::optional<TrialRecord> record_;
  std::optional<std::vector<WriterRecord>> writers_;
  std::optional<std::vector<UsageRecord>> usage_;
  std::optional<GapList> gaps_;  // all
  std::shared_ptr<const std::vector<Series>> series_;
};

}  // namespace stepwell
