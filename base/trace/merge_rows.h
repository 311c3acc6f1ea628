// MergeRows: which process, thread and ids the events of merged traces get, whatever form they are written in. A
// process of the merged trace is one lane (rank and profiler) and one process of its traces, over all cycles.
//
//   MergeRows rows(plan);
//   const MergeRows::Row process = rows.ProcessOf(input, event.pid);
//   if (process.is_new) Describe(process.number, rows.ProcessName(input, event.pid));
//
// Confined to one thread. Memory grows with the number of processes and threads, up to kRowsMax of each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/trace/merge_plan.h"
#include "base/trace/trace_event.h"

namespace stepwell {

class MergeRows {
 public:
  // More rows than anyone can look at; a hostile file does not fill memory with them.
  static constexpr std::size_t kRowsMax = 100'000;
  static constexpr std::int64_t kNoRow = -1;
  // Of what machines measured: above all ranks.
  static constexpr std::int64_t kCounterSortIndex = -1;

  struct Row {
    std::int64_t number = kNoRow;  // kNoRow: there are too many
    bool is_new = false;
  };

  explicit MergeRows(const MergePlan& plan) : plan_(plan) {}

  // `pid` and `tid` as they are written in the event.
  [[nodiscard]] Row ProcessOf(std::size_t input, std::string_view pid);
  [[nodiscard]] std::string ProcessName(std::size_t input, std::string_view pid) const;
  // Rows of one rank beside each other, the training loop above what native profilers saw.
  [[nodiscard]] std::int64_t SortIndex(std::size_t input) const;
  // Of processes that are none of a trace (a machine's counters).
  [[nodiscard]] Row AddProcess();
  // A thread keeps its number where viewers can take it; where they cannot it is new once, and ThreadName is its.
  [[nodiscard]] Row ThreadOf(std::int64_t process, std::string_view tid);
  [[nodiscard]] static std::string ThreadName(std::string_view tid);

 private:
  const MergePlan& plan_;
  absl::flat_hash_map<std::pair<std::int32_t, std::string>, std::int64_t> pids_;
  absl::flat_hash_map<std::pair<std::int64_t, std::string>, std::int64_t> tids_;
  std::int64_t process_count_ = 0;
};

// An id of flows or asynchronous events, apart for each input, and within what a double holds.
std::uint64_t MergedId(std::size_t input, std::string_view id);
// That of a flow where an id alone tells it: in Chrome's form its category and name do, too.
std::uint64_t MergedFlowId(std::size_t input, const TraceEvent& event);
// `time` of an event (JSON's microseconds) on the common time line, since 1970. Nothing: it has none, or it is absurd.
std::optional<std::int64_t> MergedTimeNs(const PlacedInput& input, std::string_view time);
// How long it is on the common time line, of both in microseconds as they are written. Nothing: that is no length.
std::optional<std::int64_t> MergedDurationNs(const PlacedInput& input, std::string_view time,
                                             std::string_view duration);

}  // namespace stepwell
