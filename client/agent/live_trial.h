// LiveTrial: the live ranks of one trial on this machine, as of one visit, and what they want of the
// machine's sampling. A rank that was over when it was found, a moment ago, counts in that visit. Pure;
// borrows the ranks until the next visit.
//
//   LiveTrial live;
//   live.Add({&writer.identity(), writer.last_batch()});
//   const WriterIdentity* rank = live.NewestThatSamples();
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "client/agent/sensors/sensor_selection.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {

// What is one trial to one master.
struct TrialKey {
  std::string server;  // resolved
  std::string project;
  std::string trial;
  auto operator<=>(const TrialKey&) const = default;
};

class LiveTrial {
 public:
  struct Rank {
    const WriterIdentity* who = nullptr;
    std::int32_t last_batch = -1;
    // 0 = not known.
    pid_t pid = 0;
  };
  void Add(Rank rank) { ranks_.push_back(rank); }
  bool empty() const { return ranks_.empty(); }

  // Of the ranks that want the machine sampled, the one that opened last; null = none.
  const WriterIdentity* NewestThatSamples() const;
  // Of all, the one that opened last and told its attempt.
  const WriterIdentity* NewestOfAttempt() const;
  // Of the lowest rank: -1 = none. With `attempt_key` of one of that attempt: another is at another
  // batch.
  std::int32_t LowestRanksBatch(const std::string& attempt_key) const;
  // Of those that are known.
  std::vector<pid_t> pids() const;
  // When the first of them opened; 0 = there is none.
  std::int64_t SinceUs() const;

 private:
  std::vector<Rank> ranks_;
};

// What the trial asked for; where it did not, what the agent was told.
SensorSelection Choose(const SamplingWish& wish, const SensorSelection& otherwise);
// The words of `wish` that are no group and no metric.
std::vector<std::string> UnknownWords(const SamplingWish& wish);

}  // namespace stepwell::agent
