#include "server/series_reading.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "server/rate_refusal.h"

namespace stepwell {

absl::StatusOr<SeriesReading::Piece> SeriesReading::Next(const SeriesSelection& selection,
                                                         SeriesNo after, std::int32_t count) {
  const std::int32_t asked = std::min(count, pieces_.count());
  const std::int64_t held_bytes = place_.bytes();
  const auto expected_bytes = static_cast<std::int64_t>(pieces_.BytesExpected(asked));
  constexpr std::int64_t kWhileItIsRead = SeriesPieces::kWhileItIsRead;
  STEPWELL_RETURN_IF_ERROR(ReserveAll(
      trial_id_, room_, place_, held_bytes + expected_bytes * std::max(copies_, kWhileItIsRead)));
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
  return ReserveAll(trial_id_, room_, place_,
                    place_.bytes() + static_cast<std::int64_t>(more_bytes) * copies_);
}

ListRoom SeriesReading::RoomFor(TrialId trial_id, MemoryRoom* room, MemoryRoom::Place& place) {
  return [trial_id, room, &place, held_bytes = place.bytes()](std::size_t bytes) {
    return ReserveAll(trial_id, room, place, held_bytes + static_cast<std::int64_t>(bytes));
  };
}

absl::Status SeriesReading::ReserveAll(TrialId trial_id, MemoryRoom* room, MemoryRoom::Place& place,
                                       std::int64_t bytes) {
  if (room == nullptr) return absl::OkStatus();
  if (bytes > room->bytes_max() * kAloneFactor) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the series that are chosen of trial ", Value(trial_id), " take over ",
        (room->bytes_max() * kAloneFactor) >> 20,
        " MiB with their labels, which is what this master's --memory-bytes allows: narrow the "
        "selector by metric_group, name or labels"));
  }
  if (room->TryResize(place, bytes)) return absl::OkStatus();
  return ComeAgain(absl::ResourceExhaustedError(absl::StrCat(
                       "lists of series of other reads take the memory that there is for them, ",
                       room->bytes_max() >> 20, " MiB of --memory-bytes; come again")),
                   "SERIES_LISTS_UNDER_WAY", absl::Seconds(1));
}

}  // namespace stepwell
