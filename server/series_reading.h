// SeriesReading: reads a list of a trial's series piece by piece, with a place in memory for each before it is asked for: lists
// of all readers together stay within their share, and who finds no room is told to come again. A trial may have 200,000 series
// of up to 35 KB each. Confined to one thread.
//
//   SeriesReading reading(snapshot, trial_id, room, place);
//   STEPWELL_ASSIGN_OR_RETURN(auto piece, reading.Next(selection, after, count));
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "server/memory_room.h"
#include "storage/read_store.h"
#include "storage/series_pieces.h"

namespace stepwell {

class SeriesReading {
 public:
  // One that is alone may take so many times the room.
  static constexpr std::int64_t kAloneFactor = 4;

  struct Piece {
    std::vector<Series> series;
    std::size_t bytes = 0;
    bool is_last = false;
  };

  // `place` grows by what is read, times `copies`, and is whoever's the list is. All outlive it; null = nobody counts.
  SeriesReading(ReadSnapshot& snapshot, TrialId trial_id, MemoryRoom* room,
                MemoryRoom::Place& place, std::int64_t copies = 1)
      : snapshot_(snapshot), trial_id_(trial_id), room_(room), place_(place), copies_(copies) {}

  // Beyond `after`, at most `count`. kResourceExhausted, with a RetryInfo where others have the room.
  absl::StatusOr<Piece> Next(const SeriesSelection& selection, SeriesNo after, std::int32_t count);
  // Before a list that is there is copied.
  absl::Status Reserve(std::size_t more_bytes);
  // For a list that somebody else reads: beyond what the place has now. Both outlive it.
  static ListRoom RoomFor(TrialId trial_id, MemoryRoom* room, MemoryRoom::Place& place);

 private:
  static absl::Status ReserveAll(TrialId trial_id, MemoryRoom* room, MemoryRoom::Place& place,
                                 std::int64_t bytes);

  ReadSnapshot& snapshot_;
  const TrialId trial_id_;
  MemoryRoom* const room_;
  MemoryRoom::Place& place_;
  const std::int64_t copies_;
  SeriesPieces pieces_;
};

}  // namespace stepwell
