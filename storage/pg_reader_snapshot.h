// PgReaderSnapshot: one read-only transaction of PgReader. It begins with its first statement, in the
// same round trip. Confined to one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "storage/pg_read_link.h"
#include "storage/read_store.h"

namespace stepwell {

class PgReaderSnapshot final : public ReadSnapshot {
 public:
  // A transaction on `loan`; no statement of it runs beyond `deadline`. `watch` outlives it.
  static absl::StatusOr<std::unique_ptr<PgReaderSnapshot>> Begin(PgShelf::Loan loan,
                                                                 const ReadWatch& watch,
                                                                 absl::Time deadline);

  [[nodiscard]] absl::StatusOr<TrialRecord> ReadTrial(TrialId trial_id) override;
  [[nodiscard]] absl::StatusOr<std::vector<TrialRecord>> ListTrials(const TrialPage& page) override;
  [[nodiscard]] absl::StatusOr<std::vector<WriterRecord>> ListWriters(TrialId trial_id) override;
  [[nodiscard]] absl::StatusOr<std::vector<Series>> ListSeries(TrialId trial_id,
                                                               const SeriesSelection& selection,
                                                               SeriesNo after,
                                                               std::int32_t limit) override;
  [[nodiscard]] absl::StatusOr<GapList> ReadGaps(TrialId trial_id,
                                                 const GapFilter& filter) override;
  [[nodiscard]] absl::StatusOr<std::vector<UsageRecord>> ReadUsage(TrialId trial_id) override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<RowCursor>> ReadRows(
      const RowFilter& filter) override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<RollupCursor>> ReadRollups(
      const RollupFilter& filter) override;
  [[nodiscard]] absl::StatusOr<std::vector<WriterBatches>> ReadBatchSpans(
      TrialId trial_id, FoldNo fold_no_max) override;
  [[nodiscard]] absl::StatusOr<std::vector<StoredLatest>> ReadLatest(
      TrialId trial_id, const std::vector<std::int32_t>& series_nos, FoldNo fold_no_max) override;

 private:
  PgReaderSnapshot(PgShelf::Loan loan, const ReadWatch& watch) : link_(std::move(loan), watch) {}

  PgReadLink link_;
  // Read once each: a snapshot does not change.
  std::map<TrialId, std::vector<UsageRecord>> usage_;
};

}  // namespace stepwell
