#include "server/missing_ranks.h"

#include <algorithm>

namespace stepwell {
namespace {

std::int32_t NewestAttempt(const std::vector<WriterRecord>& writers) {
  std::int32_t newest = 0;
  for (const WriterRecord& writer : writers) {
    if (writer.rank) newest = std::max(newest, writer.attempt);
  }
  return newest;
}

}  // namespace

MissingRanks FindMissingRanks(const std::vector<WriterRecord>& writers) {
  MissingRanks missing;
  if (writers.size() >= kWritersReadMax) return missing;
  const std::int32_t attempt = NewestAttempt(writers);
  std::int32_t world_size = 0;
  std::vector<std::int32_t> opened;
  for (const WriterRecord& writer : writers) {
    if (!writer.rank || writer.attempt != attempt) continue;
    world_size = std::max(world_size, writer.world_size);
    opened.push_back(*writer.rank);
  }
  std::sort(opened.begin(), opened.end());
  opened.erase(std::unique(opened.begin(), opened.end()), opened.end());
  // One that gave no size may have a rank beyond what others gave.
  opened.erase(std::lower_bound(opened.begin(), opened.end(), world_size), opened.end());
  missing.count = world_size - static_cast<std::int32_t>(opened.size());
  auto next = opened.begin();
  for (std::int32_t rank = 0; rank < world_size && missing.first.size() < kMissingRanksMax;
       ++rank) {
    if (next != opened.end() && *next == rank) {
      ++next;
    } else {
      missing.first.push_back(rank);
    }
  }
  return missing;
}

}  // namespace stepwell
