#include "storage/fold_split.h"

#include <algorithm>
#include <cstddef>

namespace stepwell {
namespace {

std::optional<std::pair<WriterFold, WriterFold>> HalveFold(const WriterFold& fold) {
  const std::size_t middle = fold.parts.size() / 2;
  if (middle == 0) return std::nullopt;
  const std::uint64_t border = fold.parts[middle - 1].last_sequence;
  if (border <= fold.from_sequence_exclusive || border >= fold.to_sequence) return std::nullopt;
  const auto cut = fold.parts.begin() + static_cast<std::ptrdiff_t>(middle);
  WriterFold first = fold;
  first.to_sequence = border;
  first.parts.assign(fold.parts.begin(), cut);
  WriterFold second = fold;
  second.from_sequence_exclusive = border;
  second.parts.assign(cut, fold.parts.end());
  second.gaps.clear();  // each is declared once
  return std::pair(std::move(first), std::move(second));
}

// Counts the samples of `part` into `gap`.
void CountLost(const WriterFold::Part& part, Gap& gap) {
  for (const TickTable& table : *part.tables) {
    for (const TickColumn& column : table.columns) {
      gap.sample_count += static_cast<std::int64_t>(column.values.size());
    }
    for (const std::int64_t time_us : table.times_us) {
      const bool first = gap.first_time_us == 0 && gap.last_time_us == 0;
      gap.first_time_us = first ? time_us : std::min(gap.first_time_us, time_us);
      gap.last_time_us = first ? time_us : std::max(gap.last_time_us, time_us);
    }
  }
}

}  // namespace

std::optional<std::pair<std::vector<WriterFold>, std::vector<WriterFold>>> HalveFolds(
    const std::vector<WriterFold>& folds) {
  if (folds.size() > 1) {
    const auto cut = folds.begin() + static_cast<std::ptrdiff_t>(folds.size() / 2);
    return std::pair(std::vector<WriterFold>(folds.begin(), cut),
                     std::vector<WriterFold>(cut, folds.end()));
  }
  if (folds.empty()) return std::nullopt;
  auto halves = HalveFold(folds[0]);
  if (!halves) return std::nullopt;
  return std::pair(std::vector<WriterFold>{std::move(halves->first)},
                   std::vector<WriterFold>{std::move(halves->second)});
}

WriterFold GiveUp(const WriterFold& fold) {
  Gap gap;
  gap.writer_no = fold.writer_no;
  gap.cause = GapCause::kRejected;
  gap.first_sequence = fold.from_sequence_exclusive + 1;
  gap.last_sequence = fold.to_sequence;
  gap.reason = "REFUSED_BY_DATABASE";
  for (const WriterFold::Part& part : fold.parts) CountLost(part, gap);
  WriterFold given_up = fold;
  given_up.parts.clear();
  given_up.gaps.push_back(std::move(gap));
  return given_up;
}

}  // namespace stepwell
