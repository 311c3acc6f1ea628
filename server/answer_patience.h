// AnswerPatience: how long a message of a stream that reads waits for what its caller may read. Then it goes out all the
// same, and is owed for. A core.
//
//   const SteadyTime until = EndOfWait(PatienceOf(rule.method), begin_of_call, now);
#pragma once

#include <algorithm>
#include <string_view>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

struct AnswerPatience {
  // Of one message. Whoever is not written to for two minutes is cut (StallWatch).
  absl::Duration message = absl::Minutes(1);
  // Of all since the call began; beyond, kLateWait each.
  absl::Duration call = absl::InfiniteDuration();
};

// ReadSamples ends so long after it had its turn (QueryGrpcService), with a cursor to go on with.
inline constexpr absl::Duration kReadTimeMax = absl::Minutes(1);
// A call that has an end of its own is given a second to tell it.
inline constexpr absl::Duration kLateWait = absl::Milliseconds(500);

// `method` as in AccessRule.
inline AnswerPatience PatienceOf(std::string_view method) {
  // Its clients take six seconds of silence for the end of the connection.
  if (method == "stepwell.v1.QueryService.FollowSamples") return {.message = absl::Seconds(4)};
  // A message that waits longer would keep the cursor from being told.
  if (method == "stepwell.v1.QueryService.ReadSamples") return {.call = kReadTimeMax};
  return {};
}

inline SteadyTime EndOfWait(const AnswerPatience& patience, SteadyTime begin, SteadyTime now) {
  const absl::Duration left = patience.call - (now - begin);
  return now + std::clamp(left, kLateWait, patience.message);
}

}  // namespace stepwell
