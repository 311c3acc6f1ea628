// ReplayCoverage: which of the sequences that must be in the journal a replay did not find there,
// whatever became of them: a damaged row, an entry that cannot be decoded, a row that is gone. A
// core; ReplayJournal declares what is missing. Confined to one thread.
//
//   coverage.Expect(writer);                       // each that is not folded up to its last
//   coverage.Cover(trial_id, writer_no, 4, 9);     // each entry that was read
//   for (const MissingRange& range : coverage.Missing()) ...
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "storage/ingest_store.h"

namespace stepwell {

struct MissingRange {
  TrialId trial_id{};
  WriterNo writer_no{};
  std::uint64_t first_sequence = 0;
  std::uint64_t last_sequence = 0;
};

class ReplayCoverage {
 public:
  // Those beyond folded_sequence, up to committed_sequence.
  void Expect(const WriterProgress& writer);
  // In any order, more than once, and beyond what is expected as well.
  void Cover(TrialId trial_id, WriterNo writer_no, std::uint64_t first_sequence,
             std::uint64_t last_sequence);
  // Ascending; neighbours are one range.
  std::vector<MissingRange> Missing() const;

 private:
  // Last sequence of each missing range by its first, of each writer.
  using Ranges = std::map<std::uint64_t, std::uint64_t>;
  std::map<std::pair<TrialId, WriterNo>, Ranges> missing_;
};

}  // namespace stepwell
