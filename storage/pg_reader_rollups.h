// PgRollupCursor: rows of rollups through one SQL cursor, with the grids that they share decoded once
// per page. Confined to one thread; the connection outlives it and runs nothing else meanwhile but
// its statements.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "storage/pg_read_link.h"
#include "storage/pg_reader_leaves.h"
#include "storage/read_store.h"

namespace stepwell {

class PgRollupCursor final : public RollupCursor {
 public:
  // Asks for the cursor and its first page, which come with the next round trip. `usage` is the trial's ledger in the same snapshot.
  static std::unique_ptr<PgRollupCursor> Open(PgReadLink& link, const RollupFilter& filter,
                                              const std::vector<UsageRecord>& usage);

  ~PgRollupCursor() override;
  [[nodiscard]] absl::StatusOr<std::optional<StoredRollup>> Next() override;

 private:
  // keep class, received day, writer, tick number
  using GridKey = std::tuple<std::int16_t, std::int32_t, std::int32_t, std::int64_t>;

  PgRollupCursor(PgReadLink& link, const RollupFilter& filter, std::vector<LeafRange> leaves)
      : link_(link),
        trial_id_(filter.trial_id),
        step_seconds_(filter.step_seconds),
        leaves_(std::move(leaves)) {}
  absl::Status TakePage();
  absl::Status ReadGrids();
  absl::StatusOr<StoredRollup> RollupAt(int row) const;
  GridKey GridKeyAt(int row) const;

  PgReadLink& link_;
  const TrialId trial_id_;
  const std::int32_t step_seconds_;
  const std::vector<LeafRange> leaves_;
  PgReadLink::Ticket next_page_ = 0;  // asked already
  PgResult page_;
  int page_row_ = 0;
  bool ended_ = false;
  std::map<GridKey, std::shared_ptr<const RollupGrid>> grids_;
};

}  // namespace stepwell
