// RollupMemory: decoded rows of rollups that reads have met, for those after them: a row never changes
// under its key (TickKey), so whoever knows the keys of an answer need not ask for 70 columns of each again.
// Bounded; what is longest out of use goes first. Thread-compatible: callers lock.
//
//   memory.Note(key, column);
//   if (memory.Knows(trial_id, step_seconds, series_no)) ...   // asking for keys alone may be enough
//   if (const auto known = memory.Find(key)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "storage/rollup.h"
#include "storage/tick_key.h"

namespace stepwell {

// Names a row of rollups.
struct RollupKey {
  TickKey ticks = {};
  SeriesNo series_no{};

  bool operator==(const RollupKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const RollupKey& key) {
    return H::combine(std::move(h), key.ticks, key.series_no);
  }
};

class RollupMemory {
 public:
  using Shared = std::shared_ptr<const RollupColumn>;

  explicit RollupMemory(std::size_t bytes_max) : bytes_max_(bytes_max) {}

  // Null = unknown.
  Shared Find(const RollupKey& key);
  // Whether it holds any row of the series.
  bool Knows(TrialId trial_id, std::int32_t step_seconds, SeriesNo series_no) const;
  void Note(const RollupKey& key, Shared column);
  void Clear();
  // About what is held takes.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Held {
    RollupKey key;
    Shared column;
  };
  using Series = std::tuple<TrialId, std::int32_t, SeriesNo>;

  static Series SeriesOf(const RollupKey& key) {
    return {key.ticks.trial_id, key.ticks.step_seconds, key.series_no};
  }
  void LetOneGo();

  const std::size_t bytes_max_;
  std::size_t bytes_ = 0;
  std::list<Held> held_;  // used last first
  absl::flat_hash_map<RollupKey, std::list<Held>::iterator> places_;
  absl::flat_hash_map<Series, std::int32_t> row_counts_;
};

}  // namespace stepwell
