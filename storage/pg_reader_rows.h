// PgRowCursor: rows of metrics and recent page by page, the first without an SQL cursor, with the ticks
// that they share decoded once. Confined to one thread; the connection outlives it and runs nothing else meanwhile
// but its statements.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "storage/page_place.h"
#include "storage/pg_read_link.h"
#include "storage/pg_reader_leaves.h"
#include "storage/pg_reader_ticks.h"
#include "storage/read_store.h"

namespace stepwell {

class PgRowCursor final : public RowCursor {
 public:
  // Asks for the first page, which comes with the next round trip. `usage` is the trial's ledger in the
  // same snapshot. `look_back` is for that page.
  static std::unique_ptr<PgRowCursor> Open(PgReadLink& link, const RowFilter& filter,
                                           const std::vector<UsageRecord>& usage,
                                           LookBack look_back);
  // For each series the few rows that end last, as ReadLatest needs them; not ordered. A range or batches of `filter` do
  // not count.
  static std::unique_ptr<PgRowCursor> OpenNewest(PgReadLink& link, const RowFilter& filter,
                                                 const std::vector<UsageRecord>& usage);

  ~PgRowCursor() override;
  [[nodiscard]] absl::StatusOr<std::optional<StoredRow>> Next() override;

 private:
  PgRowCursor(PgReadLink& link, const RowFilter& filter, std::vector<LeafRange> leaves);
  // Most reads end with their first page: it comes without a cursor, from a statement that is kept.
  void AskFirstPage(LookBack look_back);
  // Rows from `from` on, if it is given.
  void DeclareFrom(const PagePlace* from);
  void Declare(ReadQuery query, SqlText select, std::vector<PgParam> params);
  absl::Status TakePage();
  // Of the rows that a cursor gives again those behind them begin with.
  int RowsBeforeLastPlace() const;
  absl::Status PrepareTicks();
  absl::StatusOr<StoredRow> RowAt(int row);

  PgReadLink& link_;
  const RowFilter filter_;
  const std::vector<LeafRange> leaves_;
  const LeafPlaces by_;
  PgTickCache ticks_;
  PgReadLink::Ticket next_page_ = 0;  // asked already
  bool is_declared_ = false;
  PgResult page_;
  int page_row_ = 0;
  int page_rows_ = 0;  // of page_ that count
  bool ended_ = false;
};

}  // namespace stepwell
