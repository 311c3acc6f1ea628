#include "server/fold_pace.h"

#include <algorithm>

namespace stepwell {

absl::Duration NextFoldInterval(absl::Duration interval, std::int64_t row_count) {
  const std::int64_t rows =
      std::clamp(row_count, kFoldRowsOften, kFoldRowsOften * kFoldIntervalsMax);
  return interval * rows / kFoldRowsOften;
}

}  // namespace stepwell
