// FollowedSamples: the chosen samples of chunks, gathered by series for one message of a follower. A core;
// confined to one thread.
#pragma once

#include <cstdint>
#include <map>

#include "server/head_chunk.h"
#include "server/series_choice.h"
#include "stepwell/v1/follow.pb.h"

namespace stepwell {

class FollowedSamples {
 public:
  // Keeps nothing of `chunk`. Series that `choice` does not hold are left out.
  void Add(const HeadChunk& chunk, const SeriesChoice& choice);
  std::int64_t sample_count() const { return sample_count_; }
  // Moves them into `response`, by series number, and is empty again.
  void MoveTo(v1::FollowSamplesResponse& response);

 private:
  std::map<std::int32_t, v1::FollowSamplesResponse::SeriesSamples> series_;
  std::int64_t sample_count_ = 0;
};

}  // namespace stepwell
