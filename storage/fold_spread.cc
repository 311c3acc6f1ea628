#include "storage/fold_spread.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "storage/fold_plan.h"
#include "storage/fold_split.h"
#include "storage/stretch.h"

namespace stepwell {
namespace {

// As PlanFold joins them.
using GroupKey = std::pair<std::int32_t, std::uint32_t>;
using GroupedTables = std::map<GroupKey, std::vector<const TickTable*>>;

GroupedTables GroupTables(const WriterFold& fold) {
  GroupedTables tables_of;
  for (const WriterFold::Part& part : fold.parts) {
    for (const TickTable& table : *part.tables) {
      tables_of[{DayOf(part.received_time_us), table.tick_group}].push_back(&table);
    }
  }
  return tables_of;
}

std::int64_t SpreadRowsOf(const std::vector<const TickTable*>& tables) {
  TimeSpan span;
  for (const TickTable* table : tables) span.Add(table->times_us);
  if (span.FitsARow()) return 0;
  std::vector<std::int64_t> times;
  absl::flat_hash_set<SeriesNo> series;
  std::int64_t value_count = 0;
  for (const TickTable* table : tables) {
    times.insert(times.end(), table->times_us.begin(), table->times_us.end());
    for (const TickColumn& column : table->columns) {
      series.insert(column.series_no);
      value_count += static_cast<std::int64_t>(column.values.size());
    }
  }
  std::sort(times.begin(), times.end());
  const auto more = static_cast<std::int64_t>(CutStretches(times).size()) - 1;
  return more + std::min(value_count, more * static_cast<std::int64_t>(series.size()));
}

void CutInto(std::vector<WriterFold> folds, std::int64_t rows_max,
             std::vector<std::vector<WriterFold>>& cut) {
  std::int64_t rows = 0;
  for (const WriterFold& fold : folds) rows += SpreadRows(fold);
  auto halves = rows > rows_max ? HalveFolds(folds) : std::nullopt;
  if (!halves) {
    cut.push_back(std::move(folds));
    return;
  }
  CutInto(std::move(halves->first), rows_max, cut);
  CutInto(std::move(halves->second), rows_max, cut);
}

}  // namespace

std::int64_t SpreadRows(const WriterFold& fold) {
  std::int64_t rows = 0;
  for (const auto& [key, tables] : GroupTables(fold)) rows += SpreadRowsOf(tables);
  return rows;
}

std::vector<std::vector<WriterFold>> CutBySpread(std::vector<WriterFold> folds,
                                                 std::int64_t rows_max) {
  std::vector<std::vector<WriterFold>> cut;
  CutInto(std::move(folds), rows_max, cut);
  return cut;
}

}  // namespace stepwell
