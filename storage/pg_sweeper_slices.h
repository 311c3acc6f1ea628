// PgSliceSweeper: takes the oldest rows of one trial out of its leaves, in small transactions that move the
// ledger and note the gaps. Rows on ticks that a merge is still working on stay; ticks go with the last
// row that refers to them. Stands between PgBoundSweeper, which knows how much must go, and the leaves.
// Confined to one thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/caps_store.h"
#include "storage/leaf_sweep.h"
#include "storage/pg_connection.h"
#include "storage/pg_sweeper_ledger.h"
#include "storage/usage_ledger.h"

namespace stepwell {

// Whose rows go, and why.
struct SliceTarget {
  TrialId trial_id{};
  // Of these series, ascending; other series of the trial may share their ticks.
  std::vector<std::int32_t> series_nos = {};
  // False: they are all that the trial has.
  bool is_group = false;
  std::string field = {};
};

// One row of metrics.
struct RowKey {
  std::int32_t series_no = 0;
  std::int64_t first_time_us = 0;
  std::int32_t writer_no = 0;
  std::int64_t tick_no = 0;
};

class PgSliceSweeper {
 public:
  // All outlive this.
  PgSliceSweeper(PgConnection& connection, std::int64_t owner_epoch, SweepPace& pace,
                 SweepResult& result)
      : connection_(connection), owner_epoch_(owner_epoch), pace_(pace), result_(result) {}

  // Takes stretches of the leaf away, oldest first, until `bytes_wanted` of the ledger went or nothing
  // is left; bytes that went. `row_bytes`: of a row, about.
  absl::StatusOr<std::int64_t> FreeBytes(const SliceTarget& target, const NamedLeaf& leaf,
                                         std::int64_t bytes_wanted, std::int64_t row_bytes);
  // These rows of the leaf; bytes that went.
  absl::StatusOr<std::int64_t> RemoveRows(const SliceTarget& target, const LeafKey& leaf,
                                          const std::vector<RowKey>& rows);

 private:
  // Ticks and the series whose rows on them go.
  struct Stretch {
    std::int32_t writer_no = 0;
    std::int64_t tick_no = 0;
    std::int16_t step_seconds = 0;  // of rollups
    std::int64_t first_time_us = 0;
    std::int64_t last_time_us = 0;
    std::vector<std::int32_t> series_nos = {};
    std::size_t done = 0;
  };
  struct Slice;  // what one transaction took away
  absl::Status TakeInRollups(TrialId trial_id, const LeafKey& key);
  absl::StatusOr<std::deque<Stretch>> ReadStretches(const SliceTarget& target,
                                                    const NamedLeaf& leaf, const Stretch& after);
  absl::Status TakeSlice(const SliceTarget& target, const NamedLeaf& leaf,
                         std::int64_t bytes_wanted, std::int64_t row_bytes,
                         std::deque<Stretch>& stretches, Slice& slice);
  absl::Status DeleteRows(const SliceTarget& target, const NamedLeaf& leaf, const Stretch& stretch,
                          const std::vector<std::int32_t>& series_nos, Slice& slice);
  absl::Status DeleteTicks(const SliceTarget& target, const NamedLeaf& leaf,
                           const std::vector<Stretch>& touched, Slice& slice);
  absl::Status Finish(const SliceTarget& target, Slice& slice, std::vector<CapRemoval>& removed);

  PgConnection& connection_;
  const std::int64_t owner_epoch_;
  SweepPace& pace_;
  SweepResult& result_;
};

}  // namespace stepwell
