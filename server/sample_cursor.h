// SampleCursor: a place in an ordered read of samples: after how many samples of which series at
// which time. Means the same place after folds and merges. A value with an opaque text form, tied
// to its query as page tokens are.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/ids.h"

namespace stepwell {

struct SampleCursor {
  SeriesNo series_no{};  // 0 = before everything
  std::int64_t time_us = 0;
  // Samples of the series at exactly time_us that lie before the place.
  std::int64_t taken_count = 0;

  // Moves behind the next sample of the read.
  void Pass(SeriesNo series, std::int64_t sample_time_us);

  std::string ToText(std::uint32_t fingerprint) const;
  // Empty text is the start. kInvalidArgument as for page tokens.
  static absl::StatusOr<SampleCursor> FromText(const std::string& text, std::uint32_t fingerprint);
};

}  // namespace stepwell
