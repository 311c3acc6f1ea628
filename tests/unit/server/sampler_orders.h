// What tests of SamplerElection write writers and orders with.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/sampler_election.h"

namespace stepwell {

inline constexpr TrialId kA{7};
inline constexpr TrialId kB{8};
inline constexpr absl::Duration kOneSecond = absl::Seconds(1);
inline const SteadyTime kElectionTime = SteadyTime::Now() + absl::Hours(1);

inline SamplerElection::Writer Sampler(TrialId trial_id, int writer_no, std::string machine = "m",
                                       std::uint64_t generation = 1) {
  return {trial_id, WriterNo{writer_no}, generation, std::move(machine), true};
}
inline SamplerElection::Writer Rank(TrialId trial_id, int writer_no, std::string machine = "m") {
  return {trial_id, WriterNo{writer_no}, 1, std::move(machine), false};
}
inline SamplingOrder On(TrialId trial_id, int writer_no, int shared_with) {
  return {trial_id, WriterNo{writer_no}, true, shared_with};
}
inline SamplingOrder Off(TrialId trial_id, int writer_no, int shared_with,
                         std::vector<std::string> gpus = {}) {
  return {trial_id, WriterNo{writer_no}, false, shared_with, std::move(gpus)};
}
inline NamedGpus Gpus(const std::vector<std::string>& names) {
  NamedGpus gpus;
  for (const std::string& name : names) gpus.Add(name);
  return gpus;
}
using Orders = SamplerElection::Orders;

inline SteadyTime Unheard(TrialId, WriterNo) { return {}; }

}  // namespace stepwell
