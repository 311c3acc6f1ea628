// RangeMemory: what reads found of series in ranges of time, rows and rollups, for charts after them, together
// with the moment (ReadMoment) since which it holds. What must hold for a range to be what the database holds
// now is what must hold for a book (book_memory.h), with one thing more:
//
//   Whatever adds, moves or removes rows or rollups that a read may see changes a book, and says so to
//   BookChanges: folds, merges (which join and move rollups, too) and sweeps. What goes without saying (the
//   rows of a deleted trial, segments that are empty) belongs to no trial that is found.
//   Rows that its reader had in its heads (folds after RememberedRange::fold_no_max) are not in it: it serves
//   readers whose heads were folded as far, and no others.
//
// So a question whose book and ranges are all of the present moment asks the database who owns it, at most, and
// nothing else. Ticks, grids and columns are shared with others that hold them; here each is counted once.
// Bounded; what is longest out of use goes first. Thread-compatible: PgReadMemory locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "storage/read_moment.h"
#include "storage/read_store.h"

namespace stepwell {

// What a range is made from.
struct RangeSource {
  enum class Kind : std::int8_t { kRows, kRecentRows, kRollups };
  Kind kind = Kind::kRows;
  std::int32_t step_seconds = 0;  // of kRollups

  bool operator==(const RangeSource&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const RangeSource& source) {
    return H::combine(std::move(h), source.kind, source.step_seconds);
  }
};

struct RangeKey {
  TrialId trial_id{};
  SeriesNo series_no{};
  RangeSource source = {};

  bool operator==(const RangeKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const RangeKey& key) {
    return H::combine(std::move(h), key.trial_id, key.series_no, key.source);
  }
};

// All of a series that may hold samples of [start, end).
struct RememberedRange {
  bool Covers(std::int64_t from_us, std::int64_t to_us) const {
    return from_us >= start_us && to_us <= end_us;
  }
  std::int64_t start_us = 0;
  std::int64_t end_us = 0;
  // Of rows: those of folds up to this one. Another one's reader has others in its heads.
  FoldNo fold_no_max{};
  std::vector<StoredRow> rows = {};  // by first_time_us
  std::vector<StoredRollup> rollups = {};
};

class RangeMemory {
 public:
  using Shared = std::shared_ptr<const RememberedRange>;

  explicit RangeMemory(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Null = unknown, or of another moment.
  Shared Find(const RangeKey& key, const ReadMoment& moment);
  // In place of what was remembered; one that takes more than all may is not kept.
  void Note(const RangeKey& key, const ReadMoment& moment, Shared range);
  void Clear();
  // About what is held takes.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Held {
    RangeKey key;
    ReadMoment moment;
    Shared range;
  };
  void Count(const Held& held);
  void Forget(std::list<Held>::iterator held);
  // Something of `part_bytes` that ranges share.
  void CountPart(const void* part, std::size_t part_bytes);
  void ForgetPart(const void* part, std::size_t part_bytes);

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::list<Held> held_;  // used last first
  absl::flat_hash_map<RangeKey, std::list<Held>::iterator> places_;
  absl::flat_hash_map<const void*, std::size_t> part_uses_;
};

// About what it takes, without what it shares.
std::size_t BytesOf(const StoredRow& row);
// Of its ticks, which other rows of its stretch share; 0 without.
std::size_t TickBytesOf(const StoredRow& row);
// With its grid and its column.
std::size_t BytesOf(const StoredRollup& rollup);

}  // namespace stepwell
