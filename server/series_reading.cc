#include "server/series_reading.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/rate_refusal.h"

namespace stepwell {
namespace {

// Of the list and of what the database sent of it.
constexpr std::int64_t kWhileItIsRead = 2;

}  // namespace

absl::StatusOr<SeriesReading::Piece> SeriesReading::Next(const SeriesSelection& selection,
                                                         SeriesNo after, std::int32_t count) {
  const std::int32_t asked = std::min(count, pieces_.count());
  const std::int64_t held_bytes = place_.bytes();
  const auto expected_bytes = static_cast<std::int64_t>(pieces_.BytesExpected(asked));
  STEPWELL_RETURN_IF_ERROR(
      ReserveAll(held_bytes + expected_bytes * std::max(copies_, kWhileItIsRead)));
  Piece piece;
  STEPWELL_ASSIGN_OR_RETURN(piece.series, snapshot_.ListSeries(trial_id_, selection, after, asked));
  piece.bytes = BytesOf(piece.series);
  piece.is_last = static_cast<std::int32_t>(piece.series.size()) < asked;
  pieces_.Note(piece.series.size(), piece.bytes);
  if (room_ != nullptr) {
    room_->Resize(place_, held_bytes + static_cast<std::int64_t>(piece.bytes) * copies_);
  }
  return piece;
}

absl::Status SeriesReading::Reserve(std::size_t more_bytes) {
  return ReserveAll(place_.bytes() + static_cast<std::int64_t>(more_bytes) * copies_);
}

absl::Status SeriesReading::ReserveAll(std::int64_t bytes) {
  if (room_ == nullptr) return absl::OkStatus();
  if (bytes > room_->bytes_max() * kAloneFactor) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the series that are chosen of trial ", Value(trial_id_), " take over ",
        (room_->bytes_max() * kAloneFactor) >> 20,
        " MiB with their labels, which is what this master's --memory-bytes allows: narrow the "
        "selector by metric_group, name or labels"));
  }
  if (room_->TryResize(place_, bytes)) return absl::OkStatus();
  return ComeAgain(absl::ResourceExhaustedError(absl::StrCat(
                       "lists of series of other reads take the memory that there is for them, ",
                       room_->bytes_max() >> 20, " MiB of --memory-bytes; come again")),
                   "SERIES_LISTS_UNDER_WAY", absl::Seconds(1));
}

}  // namespace stepwell
