// PerfettoMerger: a merge in Perfetto's protobuf: a fifth of the bytes of Chrome's JSON, nanoseconds as they are, and
// slices that overlap without nesting drawn beside each other instead of wrongly.
//
// A process of a trace becomes a process, a thread a track, X and B/E slices of it (a B without an E ends with its
// input), asynchronous events (b n e, S T p F) a track for each id, C counters, s/t/f and bind_id flows of the slices
// around them, `args` arguments. What a viewer of Perfetto's form has no place for (colours, stack frames, thread times)
// is left out. How an input was placed stands beside its process' name and in an event "input" of it.
//
// Slices are held until there are kHeldBytesMax of them, so that those of a thread are written in order of their
// begins. In a larger input that is not in order itself a thread has more rows than it needs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/trace/merge_plan.h"
#include "base/trace/merge_writer.h"
#include "base/trace/trace_bytes.h"

namespace stepwell {

class PerfettoMerger : public MergeWriter {
 public:
  static constexpr std::size_t kHeldBytesMax = 64 << 20;

  struct Options {
    bool is_packed = true;  // as PerfettoWriter's
    std::size_t held_bytes_max = kHeldBytesMax;
  };

  // `plan` outlives it.
  PerfettoMerger(const MergePlan& plan, Options options, TakeBytes take);
  ~PerfettoMerger() override;

  [[nodiscard]] absl::Status Begin() override;
  [[nodiscard]] absl::Status BeginInput(std::size_t index) override;
  [[nodiscard]] absl::Status TakeEvent(std::string_view json) override;
  [[nodiscard]] absl::Status BeginCounter(const MergedCounter& counter) override;
  [[nodiscard]] absl::Status TakeCount(std::int64_t time_ns, double value) override;
  [[nodiscard]] absl::Status End() override;

  std::int64_t written_count() const override;
  std::int64_t left_out_count() const override;

 private:
  struct Impl;

  const std::unique_ptr<Impl> impl_;
};

}  // namespace stepwell
