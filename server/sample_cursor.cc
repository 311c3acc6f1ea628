#include "server/sample_cursor.h"

#include <limits>

#include "base/status_macros.h"
#include "server/page_token.h"

namespace stepwell {

void SampleCursor::Pass(SeriesNo series, std::int64_t sample_time_us) {
  if (series != series_no || sample_time_us != time_us) {
    *this = {.series_no = series, .time_us = sample_time_us, .taken_count = 0};
  }
  ++taken_count;
}

std::string SampleCursor::ToText(std::uint32_t fingerprint) const {
  return MakePageToken(fingerprint, {Value(series_no), time_us, taken_count});
}

absl::StatusOr<SampleCursor> SampleCursor::FromText(const std::string& text,
                                                    std::uint32_t fingerprint) {
  if (text.empty()) return SampleCursor();
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::int64_t> place,
                            ReadPageToken("cursor", text, fingerprint, 3));
  // A token's checksum is no secret: whoever wants to makes one of any numbers.
  constexpr std::int64_t kTakenMax = std::numeric_limits<std::int64_t>::max() / 2;
  if (place[0] < 0 || place[0] > std::numeric_limits<std::int32_t>::max() || place[2] < 0 ||
      place[2] > kTakenMax) {
    return absl::InvalidArgumentError(
        "cursor: this is no place in samples; allowed: empty, or what the answer before gave, with "
        "the same query");
  }
  return SampleCursor{.series_no = SeriesNo{static_cast<std::int32_t>(place[0])},
                      .time_us = place[1],
                      .taken_count = place[2]};
}

}  // namespace stepwell
