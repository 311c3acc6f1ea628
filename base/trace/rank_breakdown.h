// RankBreakdown: where the time of the steps of several ranks went, and who waited for whom: the distributed view of
// the TensorBoard plugin for PyTorch.
//
// A collective transfers as long as on the rank where it was shortest, for that one came last and waited for nobody. What it
// took longer on the others was waiting. The same collective of several ranks is the n-th of its name (and group of
// processes, where the traces say it) in the step of one name, the n-th trace of each rank where steps have no names. Where
// ranks that have it in a step have it in different numbers, nobody knows which is which: those are left out, as are
// collectives of one rank alone.
//
// What found no room is left out with what other ranks have at the same place: of those nobody knows who came last.
//
//   RankBreakdown breakdown;
//   breakdown.Add(0, step_breakdown.Finish());  // each trace
//   const RankReport report = breakdown.Finish();
//
// Confined to one thread. Memory: that of kStepsMax steps, and of kCallsMax collectives with kRangesMax ranges.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "base/trace/step_breakdown.h"

namespace stepwell {

// The first four add to the length. Sums end at what int64 holds.
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
  // Calls of collectives, of all ranks: that others do not have alike, and that found no room or others' did not.
  std::int64_t unmatched_count = 0;
  std::int64_t roomless_count = 0;
};

class RankBreakdown {
 public:
  // Of all ranks; what is beyond is left out.
  static constexpr std::size_t kStepsMax = 1'000'000;
  static constexpr std::size_t kCallsMax = 4'000'000;
  static constexpr std::size_t kRangesMax = 8'000'000;
  static constexpr std::size_t kTextsMax = 1'000'000;  // names of steps, collectives and groups

  // One trace of a rank; its numbers count from 0 without a hole. False: its steps find no room, and none of it is counted.
  bool Add(std::size_t rank_no, StepReport report);
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
    std::int32_t name_no = 0;
  };
  // By numbers of their texts.
  struct Key {
    std::int32_t step = 0;
    std::int32_t name = 0;
    std::int32_t group = 0;
    auto operator<=>(const Key&) const = default;
  };
  // Of one step, name and group.
  struct Alike {
    std::vector<Call> calls;  // of all ranks, each rank's in order of time
    bool has_roomless = false;
  };

  // `may_grow`: it may be a new one. kNoText: it is not known.
  static constexpr std::int32_t kNoText = -1;
  std::int32_t NumberOf(const std::string& text, bool may_grow);
  // Whether it found room.
  bool AddCall(std::size_t rank_no, std::size_t step_no, const Key& key,
               const std::vector<Interval>& ranges);
  // Whose place is known: what others have there is left out, too.
  void AddRoomless(const Key& key);
  void Match(Alike& alike);
  // The one at `index` of each rank, of which each has `count`.
  static bool MatchOne(std::vector<Call>& calls, std::size_t index, std::size_t count);
  void CountStep(const std::vector<NamedCall>& calls);

  std::vector<RankRow> rows_;
  std::vector<std::int64_t> trace_counts_;
  absl::node_hash_map<std::string, std::int32_t> text_nos_;
  std::vector<const std::string*> texts_;
  std::map<Key, Alike> calls_;
  std::size_t step_count_ = 0;
  std::size_t call_count_ = 0;
  std::size_t range_count_ = 0;
  std::int64_t unmatched_count_ = 0;
  std::int64_t roomless_count_ = 0;
};

}  // namespace stepwell
