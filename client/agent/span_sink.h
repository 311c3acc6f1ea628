// SpanSink: who is told each span of a training process once the aggregator has decided it: the file that a schedule
// writes (SpanTrace) and the steps that a master asked for (StepCapture). It stands behind RecordedSamples. Confined to
// the agent's loop.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace stepwell::agent {

// A thread of the process, or of a worker that it forked (-1: none).
struct SpanThread {
  std::int64_t worker = -1;
  std::uint32_t index = 0;
  // The kernel's number in its PID namespace; 0: unknown.
  std::uint32_t id = 0;
  friend auto operator<=>(const SpanThread& a, const SpanThread& b) = default;
};

// Times are nanoseconds since 1970.
class SpanSink {
 public:
  virtual ~SpanSink() = default;

  // Whose spans and steps follow.
  virtual void EnterThread(const SpanThread& thread) = 0;
  // `batch` -1: outside any step.
  virtual void AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
                       std::int32_t batch) = 0;
  // The step itself; the spans within it come before it.
  virtual void AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) = 0;
  // A moment. `batch` as of a span.
  virtual void AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) = 0;
  virtual void AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                        double value) = 0;
  // Events that never came, at least so many; INT64_MIN, INT64_MAX: from when or until when is not known.
  virtual void AddLoss([[maybe_unused]] std::int64_t event_count,
                       [[maybe_unused]] std::int64_t first_ns,
                       [[maybe_unused]] std::int64_t last_ns) {}
};

}  // namespace stepwell::agent
