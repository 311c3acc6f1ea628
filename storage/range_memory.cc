#include "storage/range_memory.h"

#include <iterator>

namespace stepwell {
namespace {

// Of its places in the memory.
constexpr std::size_t kPlaceBytes = 256;

std::size_t BytesOf(const EncodedVector& vector) {
  return vector.bits.bytes.capacity() + vector.bits2.bytes.capacity() +
         8 * (vector.dictionary.capacity() + vector.raw.capacity());
}

std::size_t BytesOf(const RollupGrid& grid) {
  return 256 + grid.buckets.size() * 5 * sizeof(std::int64_t);
}
std::size_t BytesOf(const RollupColumn& column) {
  const std::size_t integers =
      column.counts.size() + column.nan_counts.size() + column.last_lags_us.size();
  const std::size_t values =
      column.mins.size() + column.maxs.size() + column.sums.size() + column.lasts.size();
  return 256 + column.presence.size() + 8 * (integers + values);
}

// `use` gets each part of the range that it may share, with its bytes.
template <typename Use>
void ForEachPart(const RememberedRange& range, const Use& use) {
  for (const StoredRow& row : range.rows) {
    if (row.ticks != nullptr) use(row.ticks.get(), TickBytesOf(row));
  }
  for (const StoredRollup& rollup : range.rollups) {
    use(rollup.grid.get(), BytesOf(*rollup.grid));
    use(rollup.column.get(), BytesOf(*rollup.column));
  }
}

// Apart from its parts.
std::size_t OwnBytesOf(const RememberedRange& range) {
  std::size_t bytes = kPlaceBytes + sizeof(range) + range.rollups.size() * sizeof(StoredRollup);
  for (const StoredRow& row : range.rows) bytes += BytesOf(row);
  return bytes;
}

}  // namespace

std::size_t BytesOf(const StoredRow& row) {
  return sizeof(row) + BytesOf(row.values) + row.presence.size();
}

std::size_t TickBytesOf(const StoredRow& row) {
  constexpr std::size_t kOfTick = sizeof(std::int64_t) + sizeof(std::int32_t);
  return row.ticks == nullptr ? 0 : 128 + row.ticks->times_us.size() * kOfTick;
}

std::size_t BytesOf(const StoredRollup& rollup) {
  return sizeof(rollup) + BytesOf(*rollup.grid) + BytesOf(*rollup.column);
}

RangeMemory::Shared RangeMemory::Find(const RangeKey& key, const ReadMoment& moment) {
  const auto found = places_.find(key);
  if (found == places_.end() || found->second->moment != moment) return nullptr;
  held_.splice(held_.begin(), held_, found->second);
  return found->second->range;
}

void RangeMemory::Note(const RangeKey& key, const ReadMoment& moment, Shared range) {
  const auto known = places_.find(key);
  if (known != places_.end()) Forget(known->second);
  std::size_t bytes = OwnBytesOf(*range);
  ForEachPart(*range, [&bytes](const void*, std::size_t part_bytes) { bytes += part_bytes; });
  if (bytes > bytes_max_) return;
  held_.push_front({key, moment, std::move(range)});
  places_[key] = held_.begin();
  Count(held_.front());
  while (bytes_ > bytes_max_) Forget(std::prev(held_.end()));
}

void RangeMemory::Clear() {
  places_.clear();
  held_.clear();
  part_uses_.clear();
  bytes_ = 0;
}

void RangeMemory::Count(const Held& held) {
  bytes_ += OwnBytesOf(*held.range);
  ForEachPart(*held.range, [this](const void* part, std::size_t bytes) { CountPart(part, bytes); });
}

void RangeMemory::Forget(std::list<Held>::iterator held) {
  bytes_ -= OwnBytesOf(*held->range);
  ForEachPart(*held->range,
              [this](const void* part, std::size_t bytes) { ForgetPart(part, bytes); });
  places_.erase(held->key);
  held_.erase(held);
}

void RangeMemory::CountPart(const void* part, std::size_t part_bytes) {
  if (part_uses_[part]++ == 0) bytes_ += part_bytes;
}

void RangeMemory::ForgetPart(const void* part, std::size_t part_bytes) {
  const auto uses = part_uses_.find(part);
  if (--uses->second > 0) return;
  part_uses_.erase(uses);
  bytes_ -= part_bytes;
}

}  // namespace stepwell
