// Backoff: how long to wait before try number `attempt`. Exponential with full jitter, so that
// many clients that lost one server do not come back as one wave. Confined to one thread.
//
//   Backoff backoff({.first = absl::Milliseconds(200), .longest = absl::Seconds(30)});
//   stop.WaitForNotificationWithTimeout(backoff.NextDelay());
#pragma once

#include "absl/time/time.h"

namespace stepwell {

class Backoff {
 public:
  struct Options {
    absl::Duration first = absl::Milliseconds(200);
    absl::Duration longest = absl::Seconds(30);
  };
  explicit Backoff(Options options) : options_(options) {}

  // Uniform in [first / 2, min(longest, first * 2^attempt)]; counts the attempt.
  absl::Duration NextDelay();
  // After a success: the next delay is short again.
  void Reset() { attempt_ = 0; }

 private:
  const Options options_;
  int attempt_ = 0;
};

}  // namespace stepwell
