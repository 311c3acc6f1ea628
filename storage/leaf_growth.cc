#include "storage/leaf_growth.h"

#include <algorithm>

namespace stepwell {
namespace {

// Eight classes of some days. Beyond it the oldest are forgotten, and at worst analyzed once more.
constexpr std::size_t kLeavesMax = 256;

}  // namespace

void LeafGrowth::NoteRows(const LeafKey& leaf, std::int64_t count) {
  leaves_[leaf].row_count += count;
  if (leaves_.size() <= kLeavesMax) return;
  const auto oldest = std::min_element(leaves_.begin(), leaves_.end(), [](auto& one, auto& other) {
    return one.first.received_day < other.first.received_day;
  });
  leaves_.erase(oldest);
}

std::optional<LeafKey> LeafGrowth::TakeDue() {
  for (auto& [key, leaf] : leaves_) {
    if (leaf.row_count < leaf.due_count) continue;
    leaf.due_count = leaf.row_count * kAnalyzedFactor;
    return key;
  }
  return std::nullopt;
}

}  // namespace stepwell
