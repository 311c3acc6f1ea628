// TurnRest: work that comes in turns, of which somebody may want any number, rests after each for a multiple of what the
// turn took: others find the processors and the disk free for most of the time, however many wait for a turn. A core; confined
// to whoever has the turn.
//
//   absl::SleepFor(rest.end().Left());
//   const SteadyTime begin = SteadyTime::Now();
//   ... the turn ...
//   rest.After(begin, SteadyTime::Now());
#pragma once

#include <algorithm>

#include "absl/time/time.h"
#include "base/steady_time.h"

namespace stepwell {

class TurnRest {
 public:
  struct Options {
    // Of what a turn took; 2 leaves the others two thirds.
    int times = 2;
    // A database that hangs for seconds is no reason to rest for as long again.
    absl::Duration longest = absl::Milliseconds(500);
  };

  explicit TurnRest(Options options) : options_(options) {}

  // A turn went from `begin` to `end`.
  void After(SteadyTime begin, SteadyTime end) {
    end_ = end + std::min(options_.times * (end - begin), options_.longest);
  }
  // When the next turn may begin.
  SteadyTime end() const { return end_; }

 private:
  const Options options_;
  SteadyTime end_ = SteadyTime::InfinitePast();
};

}  // namespace stepwell
