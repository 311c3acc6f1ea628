#include "storage/tick_join.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "storage/presence.h"

namespace stepwell {
namespace {

absl::Status CheckTable(const TickTable& table) {
  const std::size_t tick_count = table.times_us.size();
  bool fits = table.batches.size() == tick_count;
  for (const TickColumn& column : table.columns) {
    if (column.presence.empty()) {
      fits = fits && column.values.size() == tick_count;
      continue;
    }
    fits = fits && column.presence.size() == tick_count &&
           column.values.size() == CountPresent(column.presence);
  }
  if (fits) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("tick group ", table.tick_group, ": vectors of a table do not fit each other"));
}

// Makes `presence` explicit for the first `tick_count` ticks, all of which have samples.
void SpellOut(std::vector<std::uint8_t>& presence, std::size_t tick_count) {
  if (presence.empty()) presence.assign(tick_count, 1);
}

void Reorder(TickColumn& column, const std::vector<std::size_t>& order) {
  std::vector<double> values;
  values.reserve(column.values.size());
  if (column.presence.empty()) {
    for (const std::size_t tick : order) values.push_back(column.values[tick]);
  } else {
    std::vector<std::size_t> value_index(column.presence.size());
    std::exclusive_scan(column.presence.begin(), column.presence.end(), value_index.begin(),
                        std::size_t{0});
    std::vector<std::uint8_t> presence;
    presence.reserve(order.size());
    for (const std::size_t tick : order) {
      presence.push_back(column.presence[tick]);
      if (column.presence[tick] != 0) values.push_back(column.values[value_index[tick]]);
    }
    column.presence = std::move(presence);
  }
  column.values = std::move(values);
}

void SortByTime(TickTable& table) {
  if (std::is_sorted(table.times_us.begin(), table.times_us.end())) return;
  std::vector<std::size_t> order(table.times_us.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return table.times_us[a] < table.times_us[b];
  });
  std::vector<std::int64_t> times;
  std::vector<std::int32_t> batches;
  times.reserve(order.size());
  batches.reserve(order.size());
  for (const std::size_t tick : order) {
    times.push_back(table.times_us[tick]);
    batches.push_back(table.batches[tick]);
  }
  table.times_us = std::move(times);
  table.batches = std::move(batches);
  for (TickColumn& column : table.columns) Reorder(column, order);
}

}  // namespace

void TickJoin::Expect(std::size_t tick_count, std::size_t value_count) {
  expected_ticks_ = tick_count;
  reserve_left_ = 2 * value_count;
  joined_.times_us.reserve(tick_count);
  joined_.batches.reserve(tick_count);
}

absl::Status TickJoin::Add(const TickTable& table) {
  STEPWELL_RETURN_IF_ERROR(CheckTable(table));
  const std::size_t first_tick = tick_count();
  ++table_no_;
  joined_.tick_group = table.tick_group;
  joined_.times_us.insert(joined_.times_us.end(), table.times_us.begin(), table.times_us.end());
  joined_.batches.insert(joined_.batches.end(), table.batches.begin(), table.batches.end());
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    Append(ColumnFor(table.columns[i].series_no, i), table.columns[i], first_tick,
           table.times_us.size());
  }
  return absl::OkStatus();
}

// A series that stands twice in one table gets as many columns: no sample is lost by that.
std::size_t TickJoin::ColumnFor(SeriesNo series_no, std::size_t hint) {
  // Tables of one tick group mostly have the same columns in the same order.
  if (hint < cursors_.size() && joined_.columns[hint].series_no == series_no &&
      cursors_[hint].table_no < table_no_) {
    return hint;
  }
  const auto [known, is_new] = first_column_.try_emplace(series_no, cursors_.size());
  std::size_t last = kNone;
  for (std::size_t i = is_new ? kNone : known->second; i != kNone; i = cursors_[i].next_same) {
    if (cursors_[i].table_no < table_no_) return i;
    last = i;
  }
  if (last != kNone) cursors_[last].next_same = cursors_.size();
  cursors_.emplace_back();
  joined_.columns.push_back({.series_no = series_no, .values = {}, .presence = {}});
  const std::size_t reserved = std::min(expected_ticks_, reserve_left_);
  joined_.columns.back().values.reserve(reserved);
  reserve_left_ -= reserved;
  return cursors_.size() - 1;
}

void TickJoin::Append(std::size_t index, const TickColumn& column, std::size_t first_tick,
                      std::size_t tick_count) {
  TickColumn& joined = joined_.columns[index];
  Cursor& cursor = cursors_[index];
  if (cursor.tick_count < first_tick) {
    SpellOut(joined.presence, cursor.tick_count);
    joined.presence.resize(first_tick, 0);
  }
  if (!column.presence.empty()) {
    SpellOut(joined.presence, first_tick);
    joined.presence.insert(joined.presence.end(), column.presence.begin(), column.presence.end());
  } else if (!joined.presence.empty()) {
    joined.presence.resize(first_tick + tick_count, 1);
  }
  joined.values.insert(joined.values.end(), column.values.begin(), column.values.end());
  cursor = {
      .tick_count = first_tick + tick_count, .table_no = table_no_, .next_same = cursor.next_same};
}

TickTable TickJoin::Take() {
  for (std::size_t i = 0; i < cursors_.size(); ++i) {
    if (cursors_[i].tick_count == tick_count()) continue;
    SpellOut(joined_.columns[i].presence, cursors_[i].tick_count);
    joined_.columns[i].presence.resize(tick_count(), 0);
  }
  TickTable taken = std::exchange(joined_, {});
  cursors_.clear();
  first_column_.clear();
  table_no_ = expected_ticks_ = reserve_left_ = 0;
  SortByTime(taken);
  return taken;
}

}  // namespace stepwell
