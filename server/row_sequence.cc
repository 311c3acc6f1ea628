#include "server/row_sequence.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"

namespace stepwell {

RowSequence::RowSequence(ReadSnapshot& snapshot, std::vector<RowFilter> filters)
    : snapshot_(snapshot), filters_(std::move(filters)) {}

std::vector<RowFilter> RowSequence::Slice(const RowFilter& filter, std::size_t series_max) {
  std::vector<RowFilter> slices;
  const std::vector<std::int32_t>& all = filter.series_nos;
  for (std::size_t at = 0; at < all.size(); at += series_max) {
    RowFilter slice = filter;
    const std::size_t end = std::min(at + series_max, all.size());
    slice.series_nos.assign(all.begin() + static_cast<std::ptrdiff_t>(at),
                            all.begin() + static_cast<std::ptrdiff_t>(end));
    slices.push_back(std::move(slice));
  }
  return slices;
}

absl::Status RowSequence::Begin() {
  if (cursor_ != nullptr || next_ == filters_.size()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(cursor_, snapshot_.ReadRows(filters_[next_++]));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<StoredRow>> RowSequence::Next() {
  for (;;) {
    if (cursor_ != nullptr) {
      STEPWELL_ASSIGN_OR_RETURN(std::optional<StoredRow> row, cursor_->Next());
      if (row) return row;
      cursor_.reset();
    }
    if (next_ == filters_.size()) return std::nullopt;
    STEPWELL_RETURN_IF_ERROR(Begin());
  }
}

absl::Status VisitRows(RowCursor& rows, const std::vector<std::int32_t>& series_nos,
                       RowVisitor& visitor) {
  STEPWELL_ASSIGN_OR_RETURN(std::optional<StoredRow> row, rows.Next());
  for (const std::int32_t series_no : series_nos) {
    while (row && Value(row->series_no) == series_no) {
      STEPWELL_RETURN_IF_ERROR(visitor.OnRow(*row));
      STEPWELL_ASSIGN_OR_RETURN(row, rows.Next());
    }
    STEPWELL_RETURN_IF_ERROR(visitor.OnSeriesEnd(SeriesNo{series_no}));
  }
  return absl::OkStatus();
}

}  // namespace stepwell
