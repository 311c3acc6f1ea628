#include "client/agent/spool_shares.h"

#include <algorithm>
#include <numeric>

namespace stepwell::agent {
namespace {

// A quarter of an even share: giving up the oldest segment never gives up most of a spool.
constexpr std::int64_t kSegmentsPerShare = 4;

// The size to which the largest are cut so that all fit, and none below it.
std::int64_t Level(std::int64_t bytes_max, std::vector<std::int64_t> sizes) {
  std::sort(sizes.begin(), sizes.end());
  std::int64_t left = bytes_max;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t even = left / static_cast<std::int64_t>(sizes.size() - i);
    if (sizes[i] > even) return even;
    left -= sizes[i];
  }
  return bytes_max;
}

}  // namespace

std::vector<SpoolBounds> ShareBound(std::int64_t bytes_max,
                                    std::span<const std::int64_t> unacked_bytes) {
  if (unacked_bytes.empty()) return {};
  const auto count = static_cast<std::int64_t>(unacked_bytes.size());
  const std::int64_t used =
      std::accumulate(unacked_bytes.begin(), unacked_bytes.end(), std::int64_t{0});
  const std::int64_t free = bytes_max - used;
  const std::int64_t level =
      free >= 0 ? 0 : Level(bytes_max, {unacked_bytes.begin(), unacked_bytes.end()});
  std::vector<SpoolBounds> shares;
  for (const std::int64_t own : unacked_bytes) {
    SpoolBounds& share = shares.emplace_back();
    share.segment_bytes_max = bytes_max / count / kSegmentsPerShare;
    // Whoever needs the free part takes it; acked tails of all share what nobody needs now.
    share.unacked_bytes_max = free >= 0 ? own + free : level;
    share.bytes_max = free >= 0 ? own + free / count : std::min(own, level);
  }
  return shares;
}

}  // namespace stepwell::agent
