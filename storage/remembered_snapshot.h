// RememberedSnapshot: what a store remembers of one trial, as a snapshot: of the moment at which ConfirmBook
// finds that it holds; before that its answers are presumed. What is not remembered is kUnavailable: ask a
// snapshot of the database.
// Confined to one thread.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "storage/range_memory.h"
#include "storage/read_patience.h"
#include "storage/read_store.h"
#include "storage/trial_book.h"

namespace stepwell {

class RememberedSnapshot final : public ReadSnapshot {
 public:
  using Range = std::shared_ptr<const RememberedRange>;
  enum class Asked { kAhead, kNow };
  struct Memory {
    // Of each of the series; empty where one is unknown.
    std::function<std::vector<Range>(const RangeSource& source,
                                     const std::vector<std::int32_t>& series_nos)>
        ranges;
    // Most likely all is taken: the database may be asked while an answer is made from it.
    std::function<void()> ask_ahead;
    // Whether all that was taken from here before it was `asked` holds. May ask the database.
    std::function<absl::StatusOr<bool>(Asked asked)> holds;
    // No rows are told after it.
    SteadyTime deadline = SteadyTime::InfiniteFuture();
  };

  RememberedSnapshot(std::shared_ptr<const TrialBook> book, Memory memory)
      : book_(std::move(book)),
        memory_(std::move(memory)),
        patience_(memory_.deadline, SteadyTime::Now()) {}

  void Heed(std::function<bool()> cancelled) override { patience_.Heed(std::move(cancelled)); }
  void ExpectBook(TrialId, const GapFilter&) override {}
  [[nodiscard]] std::optional<PresumedBook> PresumeBook(TrialId) override { return std::nullopt; }
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
  // Those that cover [start, end); empty where one is missing.
  std::vector<Range> RangesOf(const RangeSource& source,
                              const std::vector<std::int32_t>& series_nos, std::int64_t start_us,
                              std::int64_t end_us);

  const std::shared_ptr<const TrialBook> book_;
  const Memory memory_;
  ReadPatience patience_;
  bool has_asked_ahead_ = false;
  // kAhead: nothing was taken since.
  Asked asked_ = Asked::kNow;
};

// Those of a complete list that `filter` chooses, as a store lists them. REQUIRES: `all` is not truncated.
GapList GapsIn(const GapList& all, const GapFilter& filter);

}  // namespace stepwell
