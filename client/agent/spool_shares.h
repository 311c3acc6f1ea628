// SpoolShares: how one bound is shared by all spools of an agent. Pure.
//
//   const std::vector<SpoolBounds> shares = ShareBound(bytes_max, unacked_bytes);
//
// What is not acked is given up only where all of it together is past the bound, and then by those
// that hold most. Before that go acked tails, which are kept only for a master that comes back
// older.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stepwell::agent {

struct SpoolBounds {
  // Of all segments: past it acked ones go.
  std::int64_t bytes_max = 0;
  // Of segments with something unacked: past it the oldest goes too.
  std::int64_t unacked_bytes_max = 0;
  // A segment is what is given up at once, and the newest cannot be.
  std::int64_t segment_bytes_max = 0;
};

// For each spool, given what it holds unacked.
std::vector<SpoolBounds> ShareBound(std::int64_t bytes_max,
                                    std::span<const std::int64_t> unacked_bytes);

}  // namespace stepwell::agent
