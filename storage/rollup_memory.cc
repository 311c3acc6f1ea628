#include "storage/rollup_memory.h"

namespace stepwell {
namespace {

// With its place in the memory.
std::size_t BytesOf(const RollupColumn& column) {
  const std::size_t integers =
      column.counts.size() + column.nan_counts.size() + column.last_lags_us.size();
  const std::size_t values =
      column.mins.size() + column.maxs.size() + column.sums.size() + column.lasts.size();
  return 512 + column.presence.size() + 8 * (integers + values);
}

}  // namespace

RollupMemory::Shared RollupMemory::Find(const RollupKey& key) {
  const auto found = places_.find(key);
  if (found == places_.end()) return nullptr;
  held_.splice(held_.begin(), held_, found->second);
  return found->second->column;
}

bool RollupMemory::Knows(TrialId trial_id, std::int32_t step_seconds, SeriesNo series_no) const {
  return row_counts_.contains(Series{trial_id, step_seconds, series_no});
}

void RollupMemory::Note(const RollupKey& key, Shared column) {
  const std::size_t bytes = BytesOf(*column);
  if (bytes > bytes_max_ || places_.contains(key)) return;
  while (bytes_ + bytes > bytes_max_) LetOneGo();
  held_.push_front({key, std::move(column)});
  places_[key] = held_.begin();
  ++row_counts_[SeriesOf(key)];
  bytes_ += bytes;
}

void RollupMemory::Clear() {
  places_.clear();
  row_counts_.clear();
  held_.clear();
  bytes_ = 0;
}

void RollupMemory::LetOneGo() {
  const Held& oldest = held_.back();
  bytes_ -= BytesOf(*oldest.column);
  const auto rows = row_counts_.find(SeriesOf(oldest.key));
  if (--rows->second == 0) row_counts_.erase(rows);
  places_.erase(oldest.key);
  held_.pop_back();
}

}  // namespace stepwell
