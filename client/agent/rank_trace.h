// RankTrace: what a training process wanted traced (writer.json's "tracing"), recorded: its spans, in files of the
// directory that it named: one of all, or one for each so many batches. Stands between RecordedSamples, which tells the
// spans, and SpanTrace and TraceFile. What fails (a file that is full, a disk, a directory) is logged once for each file and
// costs that trace alone: nothing is held for it from then on, and its end says in the log how much was left out. Confined to
// the agent's loop; blocks as the disk does.
//
//   RankTrace trace(identity, {.machine = name, .boot_id = id}, {.begin = note_recording, .leave = leave_trace});
//   samples.SetTrace(&trace);
//   trace.NoteClock(sender.clock_offset(), clock, samples.trace_anchor(), When::kIfDue);
//   trace.Flush();       // after each drain
//   trace.Finish();      // the process is over, and all of it was drained
//
// A cycle ends with the step of the process itself whose batch is the last of so many, counted from batch 0: ranks have the
// same ones, also after a resume. What other threads did before that moment is told after it: it goes by its begin. What
// follows outside any step (the fetch that finds the loader's end, an evaluation) belongs to the cycle before, whose file
// has its name once the first step of the next is over, or the process is: a file without a step would be no cycle's. What
// others do until then is held, for it may have been within that step.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "client/agent/clock_anchor.h"
#include "client/agent/clock_offset.h"
#include "client/agent/span_trace.h"
#include "client/agent/trace_file.h"
#include "client/agent/trace_job.h"
#include "client/agent/undecided_events.h"
#include "client/agent/writer_identity.h"

namespace stepwell::agent {

class RankTrace final : public SpanSink {
 public:
  using Forget = std::function<void()>;
  struct Notes {
    // Called with a file as it is begun: an agent that is killed leaves it to the next one. Forget once it has its name, where
    // that could be noted.
    std::function<Forget(const TraceJob& job)> begin = [](const TraceJob&) { return Forget(); };
    // Called with a whole file that is to be uploaded. Where it fails, having said so, what `begin` noted stays for another try.
    std::function<absl::Status(const TraceJob& job)> leave = [](const TraceJob&) {
      return absl::OkStatus();
    };
  };

  // `source` without its writer. REQUIRES: identity.tracing.directory is not empty.
  RankTrace(const WriterIdentity& identity, SpanTrace::Source source, Notes notes,
            std::int64_t file_bytes_max = TraceFile::kBytesMax);

  RankTrace(const RankTrace&) = delete;
  RankTrace& operator=(const RankTrace&) = delete;

  // Before the first span; what comes later counts no more.
  void SetPid(std::int64_t pid);
  void EnterThread(const SpanThread& thread) override;
  void AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
               std::int32_t batch) override;
  void AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) override;
  void AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) override;
  void AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                double value) override;
  // What the process itself used, as it was sampled: a counter beside those that it recorded, while it records.
  void AddSystemMetric(const std::string& name, const std::string& unit, std::int64_t time_ns,
                       double value);

  // Writes down how far the master's clock is, each ten seconds and in each file, where that is known: a merge goes by it.
  // `anchor` is what the spans' times go by.
  enum class When { kIfDue, kNow };
  void NoteClock(ClockOffset& offset, const Clock& clock, const ClockAnchor& anchor, When when);
  // `is_drained`: all that was recorded until now has been told.
  void Flush(bool is_drained = true);
  // Once: the file gets the name of its cycle.
  void Finish();

  // Waiting for the next Flush.
  std::size_t held_bytes() const;

 private:
  // One file. Where it lies its trace points to it.
  struct Cycle {
    Cycle(const TraceFile::Options& file_options, const SpanTrace::Options& options,
          std::function<Forget(const TraceFile& file)> note);
    [[nodiscard]] absl::Status Append(std::string_view packet);
    bool has_spans() const { return file != nullptr || !spans.is_empty(); }

    const TraceFile::Options options;
    const std::function<Forget(const TraceFile& file)> note;
    SpanTrace spans;
    std::unique_ptr<TraceFile> file;  // made with the first spans
    Forget forget;                    // with it
  };

  // A cycle that is over, until all threads were drained up to its end.
  struct Ending {
    std::unique_ptr<Cycle> cycle;
    std::int64_t end_ns = 0;  // of its last step
    // Until then its thread was outside any step, as far as that is known; in the end, where the next one begins.
    std::int64_t left_until_ns = 0;
    int drain_count = 0;
  };

  std::unique_ptr<Cycle> MakeCycle(std::int64_t epoch) const;
  std::string PathOf(const std::string& name) const;
  bool IsUndecided(std::int64_t begin_ns) const;
  bool IsOfStep(std::int32_t batch) const;
  bool IsOfStepThread() const;
  SpanTrace& TraceOfStep(std::int64_t begin_ns);
  SpanTrace* TraceBeside(std::int64_t begin_ns, bool is_of_steps);
  void BeginCycle(std::int64_t begin_ns);
  void TellUndecided(std::int64_t next_from_ns);
  void TellDecided();
  void EndCycle(std::int64_t end_ns);
  void FlushCycle(Cycle& cycle) const;
  void FinishFirst();
  void FinishCycle(Cycle& cycle) const;
  void FinishFile(const Cycle& cycle) const;
  absl::Status LeaveFile(const SpanTrace& spans, const std::string& name) const;
  static void Complain(const Cycle& cycle, const absl::Status& status);

  const WriterIdentity identity_;
  const SpanTrace::Source source_;
  const Notes notes_;
  const std::int64_t file_bytes_max_;
  std::int64_t pid_ = 0;
  std::optional<SpanThread> thread_;
  std::unique_ptr<Cycle> cycle_;
  std::deque<Ending> endings_;  // the oldest first
  // Of the cycle that was made last, a step.
  bool has_begun_ = true;
  std::optional<SpanThread> step_thread_;
  UndecidedEvents undecided_;
  std::int64_t told_until_ns_ = 0;  // none of them began before
  absl::Duration clock_due_ = -absl::InfiniteDuration();
};

}  // namespace stepwell::agent
