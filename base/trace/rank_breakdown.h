// RankBreakdown: where the time of the steps of several ranks went, and who waited for whom: the distributed view of
// the TensorBoard plugin for PyTorch.
//
// A collective transfers as long as on the rank where it was shortest, for that one came last and waited for nobody. What it
// took longer on the others was waiting. The same collective of several ranks is the n-th of its name (and group of
// processes, where the traces say it) in the step of one name, the n-th trace of each rank where steps have no names. Where
// ranks that have it in a step have it in different numbers, nobody knows which is which: those are left out, as are
// collectives of one rank alone.
//
//   RankBreakdown breakdown;
//   breakdown.Add(0, step_breakdown.Finish());  // each trace
//   const RankReport report = breakdown.Finish();
//
// Confined to one thread. Memory: that of the reports' steps, and of kCallsMax collectives.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/trace/step_breakdown.h"

namespace stepwell {

// The first four add to the length.
struct RankTimes {
  std::int64_t computation_ns =
      0;                        // and nothing else: by kernels, of a trace without any by operators
  std::int64_t overlap_ns = 0;  // both at once
  std::int64_t communication_ns = 0;
  std::int64_t other_ns = 0;
  std::int64_t length_ns = 0;
  // Of collectives, also what outlasts the step.
  std::int64_t transfer_ns = 0;
  std::int64_t wait_ns = 0;
};

struct RankStep {
  std::string name;
  RankTimes times;
};

struct CollectiveTimes {
  std::int64_t call_count = 0;
  std::int64_t transfer_ns = 0;
  std::int64_t wait_ns = 0;
};

struct RankRow {
  std::vector<RankStep> steps;
  RankTimes sum;
  std::map<std::string, CollectiveTimes> collectives;  // by their names
};

struct RankReport {
  std::vector<RankRow> ranks;
  std::int64_t unmatched_count = 0;  // calls of collectives, of all ranks
};

class RankBreakdown {
 public:
  // Of all ranks; those beyond are left out.
  static constexpr std::size_t kCallsMax = 4'000'000;

  // One trace of a rank; its numbers count from 0 without a hole.
  void Add(std::size_t rank_no, StepReport report);
  // Once.
  RankReport Finish();

 private:
  struct Call {
    std::size_t rank_no = 0;
    std::size_t step_no = 0;  // of the rank
    std::vector<Interval> ranges;
  };
  struct Spent {
    std::vector<Interval> all;
    std::vector<Interval> transfers;
    std::int64_t call_count = 0;
  };
  // Of one step and name: those of all ranks, each rank's in order of time.
  using Calls = std::vector<std::vector<const Call*>>;

  void Match(const std::string& name, const std::vector<Call>& calls);
  bool MatchOne(const std::string& name, const Calls& by_rank, std::size_t index);

  std::vector<RankRow> rows_;
  std::vector<std::int64_t> trace_counts_;
  // By step, name and group.
  struct Key {
    std::string step;
    std::string name;
    std::string group;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, std::vector<Call>> calls_;
  // By rank and step: of all names, and of each.
  using StepKey = std::pair<std::size_t, std::size_t>;
  std::map<StepKey, Spent> by_step_;
  std::map<std::pair<StepKey, std::string>, Spent> by_name_;
  std::size_t call_count_ = 0;
  std::int64_t unmatched_count_ = 0;
};

}  // namespace stepwell
