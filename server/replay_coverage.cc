#include "server/replay_coverage.h"

#include <iterator>

namespace stepwell {

void ReplayCoverage::Expect(const WriterProgress& writer) {
  if (writer.committed_sequence <= writer.folded_sequence) return;
  missing_[{writer.trial_id, writer.writer_no}].emplace(writer.folded_sequence + 1,
                                                        writer.committed_sequence);
}

void ReplayCoverage::Cover(TrialId trial_id, WriterNo writer_no, std::uint64_t first_sequence,
                           std::uint64_t last_sequence) {
  const auto writer = missing_.find({trial_id, writer_no});
  if (writer == missing_.end() || last_sequence < first_sequence) return;
  Ranges& ranges = writer->second;
  auto range = ranges.upper_bound(first_sequence);
  if (range != ranges.begin()) --range;
  while (range != ranges.end() && range->first <= last_sequence) {
    const auto [first, last] = *range;
    if (last < first_sequence) {
      ++range;
      continue;
    }
    range = ranges.erase(range);
    if (first < first_sequence) ranges.emplace(first, first_sequence - 1);
    if (last > last_sequence) ranges.emplace(last_sequence + 1, last);
  }
}

std::vector<MissingRange> ReplayCoverage::Missing() const {
  std::vector<MissingRange> missing;
  for (const auto& [writer, ranges] : missing_) {
    for (const auto& [first, last] : ranges) {
      missing.push_back({writer.first, writer.second, first, last});
    }
  }
  return missing;
}

}  // namespace stepwell
