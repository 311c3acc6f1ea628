// WalkTable: a table of ticks, stretch by stretch as rows hold them, and column by column, each scaled once
// for all who look. Pure.
//
//   WalkTable(table, [&](const StretchSlice& stretch) { ... },
//             [&](const StretchSlice& stretch, const ColumnSlice& column) { ... });
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "storage/model.h"
#include "storage/presence.h"
#include "storage/scaled_column.h"
#include "storage/stretch.h"

namespace stepwell {

// Of the ticks of one stretch; there is at least one.
struct StretchSlice {
  std::span<const std::int64_t> times_us;
  std::span<const std::int32_t> batches;
};

// The samples of one series in a stretch; there is at least one.
struct ColumnSlice {
  SeriesNo series_no{};
  std::span<const double> values;
  std::span<const std::uint8_t> presence;  // one per tick of the stretch; empty = all have a sample
  const ScaledColumn& scaled;              // of `values`; of the next column after the call
};

// For how many columns there is to be room in the next stretch: all, but together no more than twice the table's samples.
// Ticks days apart are as many stretches, and each of thousands of series may be on one of them alone.
class ColumnRoom {
 public:
  explicit ColumnRoom(const TickTable& table) : columns_(table.columns.size()) {
    for (const TickColumn& column : table.columns) left_ += 2 * column.values.size();
  }
  std::size_t Next() {
    const std::size_t room = std::min(columns_, left_);
    left_ -= room;
    return room;
  }

 private:
  const std::size_t columns_;
  std::size_t left_ = 0;
};

// Calls `on_stretch` before the columns of each stretch. REQUIRES: the times of `table` ascend.
template <typename OnStretch, typename OnColumn>
void WalkTable(const TickTable& table, const OnStretch& on_stretch, const OnColumn& on_column) {
  // Of each column, how many values earlier stretches took.
  std::vector<std::size_t> values_used(table.columns.size(), 0);
  ScaledColumn scaled;
  std::size_t first_tick = 0;
  for (const std::size_t length : CutStretches(table.times_us)) {
    const StretchSlice stretch{std::span(table.times_us).subspan(first_tick, length),
                               std::span(table.batches).subspan(first_tick, length)};
    on_stretch(stretch);
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const TickColumn& column = table.columns[i];
      std::span<const std::uint8_t> presence;
      std::size_t count = length;
      if (!column.presence.empty()) {
        presence = std::span(column.presence).subspan(first_tick, length);
        count = CountPresent(presence);
        if (count == length) presence = {};
      }
      if (count == 0) continue;
      const auto values = std::span(column.values).subspan(values_used[i], count);
      values_used[i] += count;
      scaled.Set(values);
      on_column(stretch, ColumnSlice{column.series_no, values, presence, scaled});
    }
    first_tick += length;
  }
}

}  // namespace stepwell
