// PgRollupCursor: rows of rollups through one SQL cursor, with the grids that they share decoded once
// per page. Confined to one thread; the connection outlives it and runs nothing else meanwhile but
// its statements.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "storage/pg_read_link.h"
#include "storage/pg_reader_leaves.h"
#include "storage/read_store.h"

namespace stepwell {

class PgRollupCursor final : public RollupCursor {
 public:
  // Asks for the first page, which comes with the next round trip. `usage` is the trial's ledger in the
  // same snapshot.
  static std::unique_ptr<PgRollupCursor> Open(PgReadLink& link, const RollupFilter& filter,
                                              const std::vector<UsageRecord>& usage);

  ~PgRollupCursor() override;
  [[nodiscard]] absl::StatusOr<std::optional<StoredRollup>> Next() override;

 private:
  // keep class, received day, writer, tick number
  using GridKey = std::tuple<std::int16_t, std::int32_t, std::int32_t, std::int64_t>;

  // Where a row stands in the order.
  struct Place {
    std::int32_t series_no;
    std::int64_t first_time_us;
  };

  PgRollupCursor(PgReadLink& link, const RollupFilter& filter, std::vector<LeafRange> leaves)
      : link_(link), filter_(filter), leaves_(std::move(leaves)), by_(link.LeavesBy(leaves_)) {}
  // As those of PgRowCursor.
  void AskFirstPage();
  void DeclareFrom(const Place* from);
  std::string SelectSql(const Place* from, std::vector<PgParam>& params) const;
  absl::Status TakePage();
  int RowsBeforeLastPlace() const;
  absl::Status ReadGrids();
  absl::StatusOr<StoredRollup> RollupAt(int row) const;
  GridKey GridKeyAt(int row) const;

  PgReadLink& link_;
  const RollupFilter filter_;
  const std::vector<LeafRange> leaves_;
  const LeafPlaces by_;
  PgReadLink::Ticket next_page_ = 0;  // asked already
  bool is_declared_ = false;
  PgResult page_;
  int page_row_ = 0;
  int page_rows_ = 0;  // of page_ that count
  bool ended_ = false;
  std::map<GridKey, std::shared_ptr<const RollupGrid>> grids_;
};

}  // namespace stepwell
