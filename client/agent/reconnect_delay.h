// ReconnectDelay: how long the agent waits before it tries its master again. A master that was there
// seconds ago is being restarted: agents come back within a second of it, those that it had for minutes within
// seconds. One that stays away is asked less often. Always with jitter, so that a thousand agents are no wave. Confined
// to one thread.
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
    // While it has been away for no longer than `restart`: some 40 tries.
    Backoff::Options prompt = {absl::Milliseconds(200), absl::Seconds(1)};
    absl::Duration restart = absl::Seconds(20);
    // For no longer than `patience`, and from then on.
    Backoff::Options soon = {absl::Seconds(1), absl::Seconds(5)};
    Backoff::Options later = {absl::Seconds(5), absl::Seconds(30)};
    absl::Duration patience = absl::Minutes(5);
  };
  // `now` = when the first try is made.
  ReconnectDelay(const Options& options, absl::Duration now)
      : restart_(options.restart),
        patience_(options.patience),
        prompt_(options.prompt),
        soon_(options.soon),
        later_(options.later),
        seen_at_(now) {}

  // The connection that ended now had been answered on.
  void OnAnswered(absl::Duration now);
  absl::Duration Next(absl::Duration now);

 private:
  const absl::Duration restart_;
  const absl::Duration patience_;
  Backoff prompt_;
  Backoff soon_;
  Backoff later_;
  absl::Duration seen_at_;
};

}  // namespace stepwell::agent
