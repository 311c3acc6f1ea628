// TraceMerger: writes the events of many traces as one, in Chrome's JSON, piece by piece. Memory grows with the
// number of processes and threads, not with that of events.
//
//   TraceMerger merger(plan, take);
//   STEPWELL_RETURN_IF_ERROR(merger.Begin());
//   for each input: merger.BeginInput(i); merger.TakeEvent(json); ...
//   STEPWELL_RETURN_IF_ERROR(merger.End());
//
// What changes in an event: its time (base and shift), its pid (one for each lane and process, named by rank, in
// order of ranks), ids of flows and asynchronous events (apart for each input), tids that are no numbers. All
// else is copied as it was written. Confined to one thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/trace/merge_plan.h"
#include "base/trace/trace_bytes.h"
#include "base/trace/trace_event.h"

namespace stepwell {

class TraceMerger {
 public:
  // More rows than anyone can look at; a hostile file does not fill memory with them. Events of further ones are
  // left out and counted.
  static constexpr std::size_t kRowsMax = 100'000;

  TraceMerger(const MergePlan& plan, TakeBytes take);

  [[nodiscard]] absl::Status Begin();
  void BeginInput(std::size_t index);
  [[nodiscard]] absl::Status TakeEvent(std::string_view json);
  [[nodiscard]] absl::Status End();

  std::int64_t written_count() const { return written_count_; }
  // No JSON, no time, beyond a bound.
  std::int64_t left_out_count() const { return left_out_count_; }

 private:
  // Row of a process; nothing: there are too many.
  [[nodiscard]] std::int64_t PidOf(std::string_view pid);
  [[nodiscard]] std::int64_t TidOf(std::int64_t pid, std::string_view tid);
  void WriteProcess(std::int64_t pid, std::string_view original);
  void WriteMetadata(std::string_view name, std::int64_t pid, std::int64_t tid,
                     std::string_view key, std::string_view json_value);
  bool WriteEvent(const TraceEvent& event);
  // Whether `event` is metadata that the merge writes itself, or that no longer holds.
  static bool IsReplaced(const TraceEvent& event);
  void AppendId(std::string_view name, std::string_view id);
  [[nodiscard]] absl::Status HandOver(std::size_t at_least);

  const MergePlan& plan_;
  const TakeBytes take_;
  TraceEventParser parser_;
  std::string out_;
  std::size_t input_ = 0;
  absl::flat_hash_map<std::pair<std::int32_t, std::string>, std::int64_t> pids_;
  absl::flat_hash_map<std::pair<std::int64_t, std::string>, std::int64_t> tids_;
  std::int64_t written_count_ = 0;
  std::int64_t left_out_count_ = 0;
  bool is_first_ = true;
};

}  // namespace stepwell
