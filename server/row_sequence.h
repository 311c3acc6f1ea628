// RowSequence: several reads of rows of one snapshot, one after the other, as one cursor. So that a
// read of thousands of series sorts a few at a time, and one that goes on in the middle of a series
// reads no more of it than is left. Confined to one thread; the snapshot outlives it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "storage/read_store.h"

namespace stepwell {

class RowSequence final : public RowCursor {
 public:
  // Series of one statement.
  static constexpr std::size_t kSeriesPerRead = 256;

  // Reads `filters` in order. REQUIRES: each one's series come after those of the one before.
  RowSequence(ReadSnapshot& snapshot, std::vector<RowFilter> filters);

  // `filter` cut into reads of `series_max` series. REQUIRES: its series are sorted; series_max > 0.
  static std::vector<RowFilter> Slice(const RowFilter& filter,
                                      std::size_t series_max = kSeriesPerRead);

  // Asks for the first rows, without waiting for them.
  [[nodiscard]] absl::Status Begin();
  [[nodiscard]] absl::StatusOr<std::optional<StoredRow>> Next() override;

 private:
  ReadSnapshot& snapshot_;
  const std::vector<RowFilter> filters_;
  std::size_t next_ = 0;
  std::unique_ptr<RowCursor> cursor_;
};

// What a read does with rows that need no order in time.
class RowVisitor {
 public:
  virtual ~RowVisitor() = default;
  virtual absl::Status OnRow(const StoredRow& row) = 0;
  // After the last row of a series, also of one without rows.
  virtual absl::Status OnSeriesEnd(SeriesNo series_no) = 0;
};

// Calls `visitor` for each of `series_nos` in order. REQUIRES: sorted, and `rows` holds no others.
[[nodiscard]] absl::Status VisitRows(RowCursor& rows, const std::vector<std::int32_t>& series_nos,
                                     RowVisitor& visitor);

}  // namespace stepwell
