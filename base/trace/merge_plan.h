// MergePlan: how traces of several ranks, cycles and profilers come onto one time line: by how much each is
// shifted, how far that may be off, and which rows it gets. Pure functions, thread-safe.
//
// Inputs share a clock where they are of one kernel (its boot id: whatever the containers on it are called), where no kernel
// is told of one machine by its name, or else of one rank whose machine nobody tells; they are never shifted against each
// other while they overlap in time. Clocks, in this order:
//   1. A shift that a person gave.
//   2. Where ranks left a barrier together (TraceOrigin::sync_time_ns): the lowest rank's clock counts, and each
//      file is shifted by the difference of its own cycle, not by another's: clocks drift. What a native profiler
//      of the same rank wrote goes by the last barrier before it.
//   3. Where agents wrote of their exchanges with the master (MasterClock), what lies on no barrier's clock: shifted by the
//      difference to the reference, the clock of the barriers' base or else of the lowest rank that has one (of its first
//      file), and by what both drift apart meanwhile, where their exchanges show that. The error is that of both clocks, at
//      the worst moment of those files, the drift that is not shown included.
//   4. Otherwise none: files of several clocks are off by what these are, which nothing here can tell (error unknown).
// Cores: merge_clocks has them, and the rows are chosen here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/trace/trace_origin.h"

namespace stepwell {

struct MergeInput {
  std::string label;  // its file, for messages and the merged trace
  TraceOrigin origin;
  std::optional<std::int32_t> rank;  // before what the trace says itself
  std::string cycle;    // "ep0-ba7"; ranks' files of one cycle share it. Empty: by order in time
  std::string machine;  // before what the trace says itself; empty: unknown
  std::optional<std::int64_t> shift_ns;
  bool is_rank_of_name = false;  // the rank above is what its name says, and no person
};

enum class MergeAlignment {
  kClock,  // as above
  kStart,  // every input begins where the first one does; for clocks that have nothing in common
};

struct PlacedInput {
  std::string label;
  std::int32_t rank = 0;
  std::string machine = {};  // empty: unknown
  std::string boot_id = {};  // of its kernel, whose clock it is; empty: unknown
  bool is_native = false;
  // What belongs to one row of processes: rank and profiler, over all cycles. A rank of which several traces are of one
  // time (half of the shorter one, or more) has a lane of its own for each.
  std::int32_t lane = 0;
  std::int64_t base_time_ns = 0;         // added to each of its times, then
  std::int64_t shift_ns = 0;             // this, and
  double drift = 0;                      // so much for each nanosecond since window.begin
  std::optional<std::int64_t> error_ns;  // nothing: unknown
  Interval window = {};                  // TraceOrigin's, by its own clock
  std::map<std::string, std::string, std::less<>> process_names;
  std::size_t clock = 0;  // those of one number share one
};

struct MergePlan {
  std::int64_t base_time_ns = 0;  // what times of the merged trace count from, since 1970
  std::vector<PlacedInput> inputs;
  MergeAlignment alignment = MergeAlignment::kClock;
  std::vector<std::string> notes;  // for people
};

// Where a time of an input's own clock lies; nothing where that is no time of 64 bits.
std::optional<std::int64_t> PlaceTime(const PlacedInput& input, std::int64_t time_ns);
// Where its window lies. REQUIRES: a plan's input.
Interval PlacedWindow(const PlacedInput& input);

// Whether it can be placed, as far as that is its own matter. kInvalidArgument names it and what would help: no rank, no
// event, absurd times.
[[nodiscard]] absl::Status CheckMergeInput(const MergeInput& input, MergeAlignment alignment);

// kInvalidArgument likewise, also of a clock that nothing ties to that of the first.
[[nodiscard]] absl::StatusOr<MergePlan> PlanMerge(const std::vector<MergeInput>& inputs,
                                                  MergeAlignment alignment);

}  // namespace stepwell
