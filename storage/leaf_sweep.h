// LeafSweep: which leaves a sweep gives up, empties and drops, from what the catalogue and the bookkeeping
// of sweeps say. A core; PgLeafSweeper does it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "storage/keep_classes.h"

namespace stepwell {

// metrics and ticks, or rollups and rollup_ticks: emptied and dropped together.
enum class LeafPair { kSamples, kRollups };

struct LeafKey {
  std::int16_t keep_class = 0;
  std::int32_t received_day = 0;  // days since 1970
  auto operator<=>(const LeafKey&) const = default;
};

struct NamedLeaf {
  LeafPair pair{};
  LeafKey key = {};
};
// Of "metrics_k0_20260101" and the like; no value for other names.
std::optional<NamedLeaf> ParseLeafName(std::string_view name);

// One attached leaf.
struct StoredLeaf {
  NamedLeaf leaf = {};
  std::int64_t bytes = 0;  // of its main file; 0 = nothing was ever there, or it was emptied
};

// A row of swept_leaves.
struct SweptLeaf {
  LeafKey key = {};
  bool rollups_too = false;
  bool emptied = false;
  std::int64_t ledger_xid = 0;
};

struct LeafSweep {
  // Their rollups stay, or have to wait: a leaf may be among both.
  std::vector<LeafKey> give_up_samples = {};
  // Rollups are over their age, and so are samples: no class keeps these longer.
  std::vector<LeafKey> give_up_all = {};
  // Empty since long; oldest first.
  std::vector<NamedLeaf> drop = {};
};

// How far one transaction moves the mark of a leaf, behind which its samples are given up.
struct MarkMove {
  std::int64_t through_trial_id = 0;  // 0: it stays
  // One that alone has as many lines as may be looked at, so that these have to be given up one by one.
  std::int64_t long_trial_id = 0;
  bool more = false;
};
// `trial_ids`: of the next lines of the leaf, ascending, `lines_max` at most. The mark passes a trial with all of its
// lines, so the last of these may have to wait. REQUIRES: lines_max > 0.
MarkMove PlanMark(absl::Span<const std::int64_t> trial_ids, std::size_t lines_max);

// Leaves of days before this many days ago get no more rows, or hardly any: they may be dropped.
inline constexpr std::int32_t kLeafDaysKept = 3;

LeafSweep PlanLeafSweep(absl::Span<const StoredLeaf> leaves, absl::Span<const SweptLeaf> swept,
                        absl::Span<const KeepClass> classes, std::int64_t now_us);

}  // namespace stepwell
