// MergeWriter: writes the events of many traces as one, in one of the forms that viewers read, piece by piece.
// TraceMerger has Chrome's JSON, PerfettoMerger Perfetto's protobuf.
//
//   STEPWELL_RETURN_IF_ERROR(writer.Begin());
//   for each input: writer.BeginInput(i); writer.TakeEvent(json); ...
//   for each counter: writer.BeginCounter(counter); writer.TakeCount(time_ns, value); ...
//   STEPWELL_RETURN_IF_ERROR(writer.End());
//
// A status is what takes the bytes says. Confined to one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/trace/interval_set.h"

namespace stepwell {

// What a machine's sampler, or a rank, measured while the traces ran: one line of values.
struct MergedCounter {
  std::string process;  // the row that it is in, "machine node-a": those of one name share it
  std::string name;     // "gpu_util 0"
  std::string unit;     // may be empty
};

class MergeWriter {
 public:
  virtual ~MergeWriter() = default;

  [[nodiscard]] virtual absl::Status Begin() = 0;
  [[nodiscard]] virtual absl::Status BeginInput(std::size_t index) = 0;
  // One event of the input, as it is written there.
  [[nodiscard]] virtual absl::Status TakeEvent(std::string_view json) = 0;
  // After the last input.
  [[nodiscard]] virtual absl::Status BeginCounter(const MergedCounter& counter) = 0;
  // Nanoseconds since 1970 on the common time line.
  [[nodiscard]] virtual absl::Status TakeCount(std::int64_t time_ns, double value) = 0;
  [[nodiscard]] virtual absl::Status End() = 0;

  // From the first event of each input that had one to its last, on the common time line: when to count.
  const std::vector<Interval>& windows() const { return windows_; }

  // Events, counts among them.
  virtual std::int64_t written_count() const = 0;
  // No JSON, no time, beyond a bound.
  virtual std::int64_t left_out_count() const = 0;

 protected:
  void BeginWindow() { is_window_new_ = true; }
  void NoteTime(std::int64_t time_ns) {
    if (is_window_new_) windows_.push_back({time_ns, time_ns});
    is_window_new_ = false;
    windows_.back().begin = std::min(windows_.back().begin, time_ns);
    windows_.back().end = std::max(windows_.back().end, time_ns);
  }

 private:
  std::vector<Interval> windows_;
  bool is_window_new_ = true;
};

}  // namespace stepwell
