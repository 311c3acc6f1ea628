// TraceMerger: a merge in Chrome's JSON. Memory grows with the number of processes and threads, not with that of
// events.
//
// What changes in an event: its time (base and shift), its pid (one for each lane and process, named by rank, in
// order of ranks), ids of flows and asynchronous events (apart for each input), tids that are no numbers. All
// else is copied as it was written. What an input began and did not end (B without E) ends with it, for the next one has the
// same rows; an end without a begin is left out. Confined to one thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/trace/merge_plan.h"
#include "base/trace/merge_rows.h"
#include "base/trace/merge_writer.h"
#include "base/trace/trace_bytes.h"
#include "base/trace/trace_event.h"

namespace stepwell {

class TraceMerger : public MergeWriter {
 public:
  // `plan` outlives it.
  TraceMerger(const MergePlan& plan, TakeBytes take);

  [[nodiscard]] absl::Status Begin() override;
  [[nodiscard]] absl::Status BeginInput(std::size_t index) override;
  [[nodiscard]] absl::Status TakeEvent(std::string_view json) override;
  [[nodiscard]] absl::Status BeginCounter(const MergedCounter& counter) override;
  [[nodiscard]] absl::Status TakeCount(std::int64_t time_ns, double value) override;
  [[nodiscard]] absl::Status End() override;

  std::int64_t written_count() const override { return written_count_; }
  std::int64_t left_out_count() const override { return left_out_count_; }

 private:
  struct Counter {
    std::int64_t pid = MergeRows::kNoRow;
    std::string begin = {};  // of its events, up to their time
  };

  // Row of a process; kNoRow: there are too many.
  [[nodiscard]] std::int64_t PidOf(std::string_view pid);
  [[nodiscard]] std::int64_t TidOf(std::int64_t pid, std::string_view tid);
  void WriteProcess(std::int64_t pid, std::string_view name, std::int64_t sort_index);
  void WriteMetadata(std::string_view name, std::int64_t pid, std::int64_t tid,
                     std::string_view key, std::string_view json_value);
  bool WriteEvent(const TraceEvent& event);
  void BeginObject(char phase);
  // Of slices on one thread: false where it may not be written.
  bool Nest(char phase, std::int64_t pid, std::int64_t tid);
  [[nodiscard]] absl::Status EndInput();
  [[nodiscard]] absl::Status HandOver(std::size_t at_least);

  const MergePlan& plan_;
  const TakeBytes take_;
  TraceEventParser parser_;
  std::string out_;
  std::size_t input_ = 0;
  std::int64_t last_ns_ = 0;  // of the input, on the common time line
  MergeRows rows_;
  // Of the input: how many slices are open on each thread.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> open_;
  std::map<std::string, std::int64_t> counter_pids_;
  Counter counter_;
  std::int64_t written_count_ = 0;
  std::int64_t left_out_count_ = 0;
  bool is_first_ = true;
};

// Whether `event` is metadata that a merge writes itself, or that does not hold for what it writes.
bool IsReplacedByMerge(const TraceEvent& event, const MergePlan& plan);

}  // namespace stepwell
