// SpanTrace: the spans of one training process as a trace in Perfetto's form, from the events of which its timings are
// made. It stands beside RecordedSamples: what the aggregator decided goes to both. Pure; confined to the agent's loop.
//
//   SpanTrace trace({.rank = 3, .pid = 4711, .base_time_ns = now_ns}, take);
//   trace.EnterThread(process, thread);
//   trace.AddSpan("forward", begin_ns, end_ns, batch);      // nanoseconds since 1970
//   STEPWELL_RETURN_IF_ERROR(trace.Flush());
//
// Each Flush ends in a whole packet: a file that grows by these alone reads up to the last one, whoever was killed
// meanwhile. A span has its epoch, batch, rank and thread as arguments. Spans of a step come together, so that they nest;
// what is recorded as a series is a counter. Memory: what was added since the last Flush, and the names; none once it is closed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "base/trace/master_clock.h"
#include "base/trace/perfetto_slices.h"
#include "base/trace/perfetto_writer.h"
#include "base/trace/trace_origin.h"
#include "client/agent/span_sink.h"

namespace stepwell::agent {

class SpanTrace final : public SpanSink {
 public:
  // Whose clock and whose spans it is, as far as that is known: written down with what comes first.
  struct Source {
    std::string machine = {};
    std::string boot_id = {};
    std::string writer = {};
  };
  struct Options {
    std::int32_t rank = 0;
    std::int64_t pid = 0;           // 0: unknown, for now
    std::int64_t base_time_ns = 0;  // no span begins before it
    std::int64_t epoch = -1;        // as recorded before; -1: none yet
    Source source = {};
  };
  using Thread = SpanThread;

  // Series beyond so many are no counters, threads beyond so many share a row.
  static constexpr std::size_t kCountersMax = 1000;
  static constexpr std::size_t kRowsMax = 10'000;

  SpanTrace(Options options, TakeBytes take);

  // Before the first span; what comes later counts no more.
  void SetPid(std::int64_t pid);
  void EnterThread(const Thread& thread) override;
  void AddSpan(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns,
               std::int32_t batch) override;
  void AddStep(std::int64_t begin_ns, std::int64_t end_ns, std::int32_t batch) override;
  void AddInstant(std::string_view name, std::int64_t time_ns, std::int32_t batch) override;
  void AddValue(const std::string& series, const std::string& unit, std::int64_t time_ns,
                double value) override;

  // How far the master's clock is from this trace's, at a time of its own.
  void AddMasterClock(const MasterClock::Reading& reading, std::string_view trial);
  // The machine's clock was set: it is so far ahead of this trace's times.
  void AddWallClock(std::int64_t at_ns, std::int64_t ahead_ns);

  // What was added since the last one, as a packet. Where that is not taken nothing more is held: it is closed then.
  [[nodiscard]] absl::Status Flush();
  bool is_closed() const { return !out_; }

  // Spans, instants and values in packets that were taken; those that are in none of them, nor held for the next. Of a
  // flush that was taken in part each is in one of the two.
  std::int64_t taken_count() const { return taken_count_; }
  std::int64_t left_out_count() const;
  // Waiting for the next flush.
  std::size_t held_bytes() const;
  // Nothing was ever added, or an epoch alone.
  bool is_empty() const { return is_empty_; }
  // Of the first and the last step, and of what was recorded as `epoch`, also once it is closed; -1: none yet.
  std::int32_t first_batch() const { return first_batch_; }
  std::int32_t last_batch() const { return last_batch_; }
  std::int64_t epoch() const { return epoch_; }
  // As it is in the trace.
  std::int64_t pid() const;

 private:
  struct Output {
    Output(const Options& options, PerfettoWriter::Track& track_count, TakeBytes take);

    PerfettoWriter writer;
    PerfettoSlices slices;
  };
  struct Row {
    PerfettoWriter::Track track = 0;
    PerfettoSlices::Lane lane = 0;
    std::int64_t number = 0;  // the kernel's, where it is known, else counted from 0
  };

  [[nodiscard]] absl::Status Take(std::string_view packet);
  void Close();
  Row& RowOf(const Thread& thread);
  // Of the thread that was entered last; null where none was.
  const Row* EnteredRow();
  std::string BodyOf(std::string_view name, std::int32_t batch, const Row& row);
  void Describe();
  void TellSource(std::int64_t time_ns);

  Options options_;
  const TakeBytes take_;
  PerfettoWriter::Track track_count_ = 0;
  std::optional<Output> out_;  // until it is closed
  const PerfettoWriter::Track process_;
  bool is_described_ = false;
  bool is_source_told_ = false;
  std::map<Thread, Row> rows_;
  std::optional<Thread> thread_;  // entered last
  Row* row_ = nullptr;            // of it, once it has a span
  std::map<std::string, PerfettoWriter::Track> counters_;
  std::int32_t first_batch_ = -1;
  std::int32_t last_batch_ = -1;
  std::int64_t epoch_;
  std::int64_t added_count_ = 0;
  std::int64_t unsliced_count_ = 0;  // of those, what is no slice
  std::int64_t taken_count_ = 0;
  bool is_empty_ = true;
};

}  // namespace stepwell::agent
