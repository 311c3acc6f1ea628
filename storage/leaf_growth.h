// LeafGrowth: which leaves have grown so much since they were last analyzed that PostgreSQL plans for other
// leaves than there are: autovacuum comes within minutes, questions before. A core. Confined to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "storage/leaf_sweep.h"

namespace stepwell {

// With fewer rows any plan is quick.
inline constexpr std::int64_t kAnalyzedFromRows = 500;
// Statistics of a tenth still choose the same plans; autovacuum comes in between.
inline constexpr std::int64_t kAnalyzedFactor = 10;

class LeafGrowth {
 public:
  // Merges wrote so many rows into the leaf, or so many that were rolled back.
  void NoteRows(const LeafKey& leaf, std::int64_t count);
  // The oldest leaf that is due; it is again when it has grown tenfold.
  std::optional<LeafKey> TakeDue();

 private:
  struct Leaf {
    std::int64_t row_count = 0;
    std::int64_t due_count = kAnalyzedFromRows;
  };
  std::map<LeafKey, Leaf> leaves_;
};

}  // namespace stepwell
