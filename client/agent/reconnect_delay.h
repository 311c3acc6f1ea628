// ReconnectDelay: how long the agent waits before it tries its master again. A master that was there
// minutes ago is being restarted: agents come back within seconds of it. One that stays away is
// asked less often. Always with jitter, so that a thousand agents are no wave. Confined to one
// thread.
//
//   if (answered) delay.OnAnswered(clock.Monotonic());
//   Wait(delay.Next(clock.Monotonic()));
#pragma once

#include "absl/time/time.h"
#include "base/backoff.h"

namespace stepwell::agent {

class ReconnectDelay {
 public:
  struct Options {
    // While it has been away for no longer than `patience`, and from then on.
    Backoff::Options soon = {absl::Milliseconds(200), absl::Seconds(5)};
    Backoff::Options later = {absl::Seconds(5), absl::Seconds(30)};
    absl::Duration patience = absl::Minutes(5);
  };
  // `now` = when the first try is made.
  ReconnectDelay(const Options& options, absl::Duration now)
      : patience_(options.patience), soon_(options.soon), later_(options.later), seen_at_(now) {}

  // The connection that ended now had been answered on.
  void OnAnswered(absl::Duration now);
  absl::Duration Next(absl::Duration now);

 private:
  const absl::Duration patience_;
  Backoff soon_;
  Backoff later_;
  absl::Duration seen_at_;
};

}  // namespace stepwell::agent
