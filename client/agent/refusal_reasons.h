// What a master's reason for refusing a message of a writer asks of its agent. A core; pure.
#pragma once

#include <algorithm>
#include <iterator>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace stepwell::agent {

// The master's word for a token that it does not know, or that has ended.
inline constexpr char kTokenRefused[] = "TOKEN_REFUSED";

// How long a writer says nothing after a message of its was not taken.
inline constexpr absl::Duration kNotTakenDelay = absl::Seconds(1);

// Refusals of a chunk, a gap or a Close. All others (of definitions, mostly) leave the sequences as
// they are: the master takes the chunks, and counts what it drops of a series that it refused.
inline bool ConcernsSequence(absl::string_view reason) {
  static constexpr absl::string_view kReasons[] = {"CHECKSUM",  "SEQUENCE_RANGE", "FINAL_SEQUENCE",
                                                   "GAP_CAUSE", "SAMPLE_COUNT",   "TIME_RANGE",
                                                   "REASON"};
  return std::find(std::begin(kReasons), std::end(kReasons), reason) != std::end(kReasons);
}

// The master's word for a stream on which it has no place for one more writer just then.
inline constexpr char kNoPlace[] = "WRITERS_PER_STREAM";

// The master could not look at a token just then.
inline bool IsToBeShownAgain(absl::string_view reason) {
  return reason == "TOKEN_NOT_LOOKED_UP" || reason == "RATE_LIMIT";
}

}  // namespace stepwell::agent
