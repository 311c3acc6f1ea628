#include "server/batch_attempts.h"

#include <algorithm>

namespace stepwell {

void BatchAttempts::Add(std::int32_t attempt, std::int32_t first_batch, std::int32_t last_batch) {
  Span& span = spans_[attempt];
  span.first = std::min(span.first, first_batch);
  span.last = std::max(span.last, last_batch);
}

bool BatchAttempts::Counts(std::int32_t attempt, std::int32_t batch) const {
  if (batch < 0) return true;
  for (auto it = spans_.upper_bound(attempt); it != spans_.end(); ++it) {
    if (batch >= it->second.first && batch <= it->second.last) return false;
  }
  return true;
}

std::optional<std::int32_t> BatchAttempts::NewestIn(std::int64_t start, std::int64_t end) const {
  for (auto it = spans_.rbegin(); it != spans_.rend(); ++it) {
    if (it->second.first < end && it->second.last >= start) return it->first;
  }
  return std::nullopt;
}

std::int64_t BatchAttempts::end_batch() const {
  std::int64_t end = 0;
  for (const auto& [attempt, span] : spans_) end = std::max<std::int64_t>(end, span.last + 1LL);
  return end;
}

}  // namespace stepwell
