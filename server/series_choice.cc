#include "server/series_choice.h"

#include <algorithm>
#include <set>

namespace stepwell {

bool Matches(const SeriesSelection& selection, const Series& series) {
  const SeriesKey& key = series.definition.key;
  const auto fits = [](const std::string& wanted, const std::string& given) {
    return wanted.empty() || wanted == given;
  };
  if (!fits(selection.metric_group, key.metric_group) || !fits(selection.name, key.name)) {
    return false;
  }
  const auto& numbers = selection.series_nos;
  if (!numbers.empty() &&
      !std::binary_search(numbers.begin(), numbers.end(), Value(series.series_no))) {
    return false;
  }
  return std::all_of(selection.labels.begin(), selection.labels.end(), [&](const auto& label) {
    return std::find(key.labels.begin(), key.labels.end(), label) != key.labels.end();
  });
}

std::vector<SeriesNo> SeriesChoice::Unknown(const std::vector<HeadChunkPtr>& chunks) const {
  std::set<SeriesNo> unknown;
  for (const HeadChunkPtr& chunk : chunks) {
    for (const TickTable& table : chunk->tables) {
      for (const TickColumn& column : table.columns) {
        if (column.values.empty() || chosen_.contains(column.series_no)) continue;
        unknown.insert(column.series_no);
      }
    }
  }
  return {unknown.begin(), unknown.end()};
}

bool SeriesChoice::Learn(const Series& series) {
  const bool chosen = selections_.empty() ||
                      std::any_of(selections_.begin(), selections_.end(),
                                  [&](const SeriesSelection& one) { return Matches(one, series); });
  chosen_[series.series_no] = chosen;
  return chosen;
}

bool SeriesChoice::Holds(SeriesNo series_no) const {
  const auto found = chosen_.find(series_no);
  return found != chosen_.end() && found->second;
}

}  // namespace stepwell
