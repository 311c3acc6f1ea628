#include "base/trace/slice_rows.h"

#include <algorithm>

namespace stepwell {

bool SliceRows::HasRoom(Row& row, int index, std::int64_t begin_ns, std::int64_t end_ns,
                        const TakeEnd& take_end) {
  if (begin_ns < row.time_ns) return false;
  while (!row.open_ends.empty() && row.open_ends.back() <= begin_ns) {
    row.time_ns = std::max(row.time_ns, row.open_ends.back());
    take_end(index, row.open_ends.back());
    row.open_ends.pop_back();
  }
  return row.open_ends.empty() || end_ns <= row.open_ends.back();
}

std::optional<int> SliceRows::Place(std::int64_t begin_ns, std::int64_t end_ns,
                                    const TakeEnd& take_end) {
  for (int index = 0; index < kRowsMax; ++index) {
    if (index == static_cast<int>(rows_.size())) rows_.emplace_back();
    Row& row = rows_[static_cast<std::size_t>(index)];
    if (!HasRoom(row, index, begin_ns, end_ns, take_end)) continue;
    row.time_ns = begin_ns;
    row.open_ends.push_back(end_ns);
    return index;
  }
  return std::nullopt;
}

void SliceRows::EndAll(const TakeEnd& take_end) {
  for (int index = 0; index < static_cast<int>(rows_.size()); ++index) {
    Row& row = rows_[static_cast<std::size_t>(index)];
    for (; !row.open_ends.empty(); row.open_ends.pop_back()) {
      row.time_ns = std::max(row.time_ns, row.open_ends.back());
      take_end(index, row.open_ends.back());
    }
  }
}

}  // namespace stepwell
