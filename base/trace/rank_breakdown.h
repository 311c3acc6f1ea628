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
// Confined to one thread. Memory: that of the reports' steps, and of kCallsMax collectives with kRangesMax ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
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
  // While no device did anything, whatever the processor did. Nothing: a trace tells of no device.
  std::optional<std::int64_t> idle_ns = {};
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
  // Of its devices, from the first event of each trace to its last: busy, and the whole.
  std::int64_t device_busy_ns = 0;
  std::int64_t device_span_ns = 0;
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
  static constexpr std::size_t kRangesMax = 8'000'000;

  // One trace of a rank; its numbers count from 0 without a hole.
  void Add(std::size_t rank_no, StepReport report);
  // Once.
  RankReport Finish();

 private:
  struct Range {
    Interval at;
    std::int64_t transfer_begin = 0;  // until its end; once it is matched
  };
  struct Call {
    std::size_t rank_no = 0;
    std::size_t step_no = 0;  // of the rank
    std::vector<Range> ranges;
    bool is_matched = false;
  };
  struct NamedCall {
    const Call* call = nullptr;
    const std::string* name = nullptr;
  };

  // Of one step, name and group: those of all ranks, each rank's in order of time.
  void Match(std::vector<Call>& calls);
  // The one at `index` of each rank, of which each has `count`.
  static bool MatchOne(std::vector<Call>& calls, std::size_t index, std::size_t count);
  void CountStep(const std::vector<NamedCall>& calls);

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
  std::size_t call_count_ = 0;
  std::size_t range_count_ = 0;
  std::int64_t unmatched_count_ = 0;
};

}  // namespace stepwell
