#include "storage/rollup_plan.h"

#include <algorithm>

#include "storage/stretch.h"

namespace stepwell {
namespace {

struct Member {
  const RollupPiece* piece = nullptr;
  bool is_new = false;
  std::size_t index = 0;
};

// Members in the order of time, while they fit into one row.
class Group {
 public:
  bool TryAdd(const Member& member) {
    const RollupPiece& piece = *member.piece;
    if (members_.empty()) {
      first_time_us_ = piece.first_time_us;
      last_time_us_ = piece.last_time_us;
      last_bucket_ = piece.last_bucket;
      bucket_count_ = piece.bucket_count;
      members_.push_back(member);
      return true;
    }
    const std::int64_t last_time_us = std::max(last_time_us_, piece.last_time_us);
    const std::uint64_t span_us =
        static_cast<std::uint64_t>(last_time_us) - static_cast<std::uint64_t>(first_time_us_);
    // Neighbours share the bucket in which one ends and the other begins.
    const std::int64_t more = piece.bucket_count - (piece.first_bucket <= last_bucket_ ? 1 : 0);
    if (IsFull() || bucket_count_ + more > kRollupRowBucketsMax ||
        span_us > static_cast<std::uint64_t>(kSlowStretchSpanUs)) {
      return false;
    }
    last_time_us_ = last_time_us;
    last_bucket_ = std::max(last_bucket_, piece.last_bucket);
    bucket_count_ += more;
    members_.push_back(member);
    return true;
  }

  // Nothing where it has no new stretch.
  void PlanInto(std::vector<PlannedRollup>& planned) const {
    PlannedRollup row;
    for (const Member& member : members_) {
      if (!member.is_new) continue;
      if (row.stretch_count == 0) row.first_stretch = member.index;
      ++row.stretch_count;
    }
    if (row.stretch_count == 0) return;
    const std::int64_t narrow_max = JoinedBelow();
    for (const Member& member : members_) {
      if (member.is_new || member.piece->bucket_count >= narrow_max) continue;
      row.narrow.push_back(member.index);
    }
    std::sort(row.narrow.begin(), row.narrow.end());
    planned.push_back(std::move(row));
  }

 private:
  bool IsFull() const { return bucket_count_ >= kRollupRowBuckets; }
  // Narrow rows with fewer buckets than this are joined now.
  std::int64_t JoinedBelow() const {
    if (IsFull()) return kNarrowRollupBuckets;
    const auto small = std::count_if(members_.begin(), members_.end(), [](const Member& member) {
      return !member.is_new && member.piece->bucket_count < kSmallRollupBuckets;
    });
    return static_cast<std::size_t>(small) >= kSmallRollupsMax ? kSmallRollupBuckets : 0;
  }

  std::vector<Member> members_;
  std::int64_t first_time_us_ = 0;
  std::int64_t last_time_us_ = 0;
  std::int64_t last_bucket_ = 0;
  std::int64_t bucket_count_ = 0;
};

}  // namespace

RollupPiece RollupPiece::Of(const RollupGrid& grid, std::int64_t first_time_us,
                            std::int64_t last_time_us) {
  return {.first_time_us = first_time_us,
          .last_time_us = last_time_us,
          .first_bucket = grid.buckets.front(),
          .last_bucket = grid.buckets.back(),
          .bucket_count = static_cast<std::int64_t>(grid.buckets.size())};
}

std::vector<RollupPiece> RollupPiecesOf(std::span<const StretchRollups> stretches,
                                        std::size_t step_index) {
  std::vector<RollupPiece> pieces;
  for (const StretchRollups& stretch : stretches) {
    const Rollup& rollup = stretch[step_index];
    pieces.push_back(RollupPiece::Of(rollup.grid, rollup.first_time_us, rollup.last_time_us));
  }
  return pieces;
}

std::vector<PlannedRollup> PlanRollups(std::span<const RollupPiece> stretches,
                                       std::span<const RollupPiece> narrow) {
  std::vector<Member> members;
  for (std::size_t i = 0; i < stretches.size(); ++i) members.push_back({&stretches[i], true, i});
  for (std::size_t i = 0; i < narrow.size(); ++i) members.push_back({&narrow[i], false, i});
  std::stable_sort(members.begin(), members.end(), [](const Member& left, const Member& right) {
    return left.piece->first_time_us < right.piece->first_time_us;
  });
  std::vector<PlannedRollup> planned;
  Group group;
  for (const Member& member : members) {
    if (group.TryAdd(member)) continue;
    group.PlanInto(planned);
    group = Group();
    group.TryAdd(member);
  }
  group.PlanInto(planned);
  return planned;
}

}  // namespace stepwell
