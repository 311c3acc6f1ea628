// PgRowCursor: rows of metrics and recent through one SQL cursor, with the ticks that they share
// decoded once. Confined to one thread; the connection outlives it and runs nothing else meanwhile
// but its statements.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "storage/pg_read_link.h"
#include "storage/pg_reader_leaves.h"
#include "storage/pg_reader_ticks.h"
#include "storage/read_store.h"

namespace stepwell {

class PgRowCursor final : public RowCursor {
 public:
  // Asks for the cursor and its first page, which come with the next round trip. `usage` is the trial's ledger in the same snapshot.
  static std::unique_ptr<PgRowCursor> Open(PgReadLink& link, const RowFilter& filter,
                                           const std::vector<UsageRecord>& usage);
  // For each series the newest few rows, as ReadLatest needs them; not ordered.
  static std::unique_ptr<PgRowCursor> OpenNewest(PgReadLink& link, const RowFilter& filter,
                                                 const std::vector<UsageRecord>& usage);

  ~PgRowCursor() override;
  [[nodiscard]] absl::StatusOr<std::optional<StoredRow>> Next() override;

 private:
  PgRowCursor(PgReadLink& link, TrialId trial_id, std::vector<LeafRange> leaves);
  static std::unique_ptr<PgRowCursor> Declare(PgReadLink& link, TrialId trial_id,
                                              const std::vector<LeafRange>& leaves,
                                              ReadStatement declare);
  absl::Status TakePage();
  absl::Status PrepareTicks();
  absl::StatusOr<StoredRow> RowAt(int row);

  PgReadLink& link_;
  PgTickCache ticks_;
  PgReadLink::Ticket next_page_ = 0;  // asked already
  PgResult page_;
  int page_row_ = 0;
  bool ended_ = false;
};

}  // namespace stepwell
