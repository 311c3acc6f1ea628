// CollectiveCalls: the collectives of one rank in a native profiler's trace: who waited for whom is seen where those of
// several ranks are laid beside each other (RankBreakdown). Stands within StepBreakdown.
//
// A collective is an operator of NCCL or Gloo with the kernels that have its id, or a kernel of NCCL that no such operator
// has (Kineto of today joins it to another one). What goes from one rank to one other (send, recv) is none.
//
//   calls.TakeOperator(event, at, id);                         // while the trace is read
//   const std::int32_t name_no = calls.NameOfKernel(event);
//   calls.TakeKernel(id, name_no, at, launch_ns);              // once all operators are known
//   std::vector<CollectiveCall> all = calls.Finish();
//
// Confined to one thread. Memory: kCallsMax calls with kRangesMax ranges; a call whose ranges find no room is left out whole.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/trace/interval_set.h"
#include "base/trace/trace_event.h"

namespace stepwell {

struct CollectiveName {
  std::string name;
  std::string group;  // of processes, as the trace says it; empty: it does not
};

struct CollectiveCall {
  std::int32_t name_no = 0;
  std::int64_t step_no = 0;  // of the report's steps
  // When the processor began it: by this it belongs to a step. Nothing: nobody says.
  std::optional<std::int64_t> host_ns = {};
  // Its operator and its kernels, in order of time.
  std::vector<Interval> ranges;
};

class CollectiveCalls {
 public:
  static constexpr std::size_t kCallsMax = 1'000'000;
  // Of all of them: one operator may have any number of kernels.
  static constexpr std::size_t kRangesMax = 4'000'000;
  // Those beyond share one.
  static constexpr std::size_t kNamesMax = 10'000;
  static constexpr std::int32_t kNoName = -1;

  void TakeOperator(const TraceEvent& event, Interval at, std::int64_t external_id);
  // kNoName: it is no collective by its own name.
  std::int32_t NameOfKernel(const TraceEvent& event);

  // Its launch began at `host_ns`, where that is known.
  void TakeKernel(std::int64_t external_id, std::int32_t name_no, Interval at,
                  std::optional<std::int64_t> host_ns);

  // By the begin of the first of their ranges, without steps. Once.
  std::vector<CollectiveCall> Finish();
  std::vector<CollectiveName> TakeNames() { return std::move(names_); }
  std::int64_t left_out_count() const { return left_out_count_; }

 private:
  std::int32_t NameNo(std::string name, std::string_view group_json);
  void Add(std::int32_t name_no, Interval at, std::optional<std::int64_t> host_ns);
  void AddRange(std::int64_t& call_no, Interval at);

  std::vector<CollectiveName> names_;
  absl::flat_hash_map<std::string, std::int32_t> name_nos_;
  std::vector<CollectiveCall> calls_;
  // Operators first: what of kernels alone comes is behind them.
  std::size_t operator_count_ = 0;
  absl::flat_hash_map<std::int64_t, std::int64_t>
      by_id_;  // of operators; -1: no collective, or beyond the bound
  std::size_t range_count_ = 0;
  std::int64_t left_out_count_ = 0;
};

}  // namespace stepwell
