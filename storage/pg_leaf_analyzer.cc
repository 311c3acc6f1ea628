#include "storage/pg_leaf_analyzer.h"

#include <optional>
#include <vector>

#include "storage/rollup_ring.h"

namespace stepwell {

void PgLeafAnalyzer::Run() {
  if (analyze_.busy()) return;
  const std::optional<LeafKey> due = growth_.TakeDue();
  if (!due) return;
  std::vector<SqlText> tables;
  for (const char* table : {"metrics", "ticks", "rollups", "rollup_ticks"}) {
    tables.push_back(RollupTable(table, RollupHome::kLeaf, due->keep_class, due->received_day));
  }
  for (const char* table : {"rollups", "rollup_ticks"}) {
    tables.push_back(RollupSegment(table, RollupSegmentOf(due->received_day)));
  }
  analyze_.Start(std::move(tables), PgVacuum::Task::kAnalyze);
}

}  // namespace stepwell
