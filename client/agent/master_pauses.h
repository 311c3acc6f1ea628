// MasterPauses: which masters are asked for no token just now, whatever the trial: one that is silent ever more seldom, one
// that has none to give each five minutes. When its time is over the first trial that is due asks alone, and what it hears
// counts for all. A core; times are the monotonic clock's. Confined to its caller's lock.
//
//   if (now < pauses.Until(server)) continue;
//   pauses.OnAnswer(server, Ask(server).status(), /*holds_one=*/!shown.empty(), now);
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/backoff.h"

namespace stepwell::agent {

class MasterPauses {
 public:
  // Long ago: it may be asked.
  absl::Duration Until(const std::string& server) const;
  // `holds_one`: for that trial a token that was fetched lives, so that this master, or another one under its name, has some.
  void OnAnswer(const std::string& server, const absl::Status& answer, bool holds_one,
                absl::Duration now);

 private:
  struct Pause {
    absl::Duration until = -absl::InfiniteDuration();
    Backoff backoff{{.first = absl::Seconds(1), .longest = absl::Minutes(1)}};
  };
  std::map<std::string, Pause> pauses_;  // of those that gave no answer, and lately
};

}  // namespace stepwell::agent
