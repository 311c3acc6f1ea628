// PgRollupCursor: rows of rollups page by page, the first without an SQL cursor, with the grids that they
// share decoded once. Of rows that an earlier read left in memory the first page asks for the keys alone.
// Confined to one thread; the connection outlives it and runs nothing else meanwhile but its statements.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "storage/page_place.h"
#include "storage/pg_read_link.h"
#include "storage/pg_reader_leaves.h"
#include "storage/read_store.h"
#include "storage/rollup_memory.h"
#include "storage/tick_key.h"

namespace stepwell {

class PgRollupCursor final : public RollupCursor {
 public:
  // Asks for the first page, which comes with the next round trip. `usage` is the trial's ledger in the
  // same snapshot. `look_back` is for that page.
  static std::unique_ptr<PgRollupCursor> Open(PgReadLink& link, const RollupFilter& filter,
                                              const std::vector<UsageRecord>& usage,
                                              LookBack look_back);

  ~PgRollupCursor() override;
  [[nodiscard]] absl::StatusOr<std::optional<StoredRollup>> Next() override;

 private:
  PgRollupCursor(PgReadLink& link, const RollupFilter& filter, std::vector<LeafRange> leaves)
      : link_(link), filter_(filter), leaves_(std::move(leaves)), by_(link.LeavesBy(leaves_)) {}
  // As those of PgRowCursor.
  void AskFirstPage(LookBack look_back);
  void DeclareFrom(const PagePlace* from);
  enum class Pages { kFirst, kAll };
  // Rows that memory is likely to know are asked for by their keys alone.
  enum class Holds { kRows, kKeys };
  SqlText SelectSql(Pages pages, Holds holds, LookBack look_back, const PagePlace* from,
                    std::vector<PgParam>& params) const;
  // In leaves, then where rows wait to be joined.
  std::vector<SqlText> AllPlacesOf(std::string_view table, std::vector<PgParam>& params) const;
  absl::Status TakePage();
  int RowsBeforeLastPlace() const;
  // Of a page of keys: what memory does not know.
  absl::Status ReadUnknown();
  absl::StatusOr<PgResult> ReadRowsOf(const std::vector<int>& page_rows);
  absl::Status ReadGrids(const PgResult& rows, int row_count);
  absl::StatusOr<StoredRollup> RollupAt(const PgResult& rows, int row) const;
  RollupKey KeyAt(const PgResult& result, int row) const;
  TickKey GridKeyAt(const PgResult& result, int row, int first) const;

  PgReadLink& link_;
  const RollupFilter filter_;
  const std::vector<LeafRange> leaves_;
  const LeafPlaces by_;
  PgReadLink::Ticket next_page_ = 0;  // asked already
  bool is_declared_ = false;
  Holds first_page_ = Holds::kRows;
  PgResult page_;
  Holds page_holds_ = Holds::kRows;
  std::vector<PgReadMemory::KnownRollup> known_;  // of a page of keys
  int page_row_ = 0;
  int page_rows_ = 0;  // of page_ that count
  bool ended_ = false;
  std::map<TickKey, std::shared_ptr<const RollupGrid>> grids_;
};

}  // namespace stepwell
