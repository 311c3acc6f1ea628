// RecordedSamples: turns what the aggregator decided into samples of series: names to refs, clock
// readings to times. It stands between StepAggregator and ChunkBuilder. Confined to the agent's
// loop.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/agent/chunk_builder.h"
#include "client/agent/clock_anchor.h"
#include "client/agent/epoch_log.h"
#include "client/agent/recorded_rings.h"
#include "client/agent/series_catalog.h"
#include "client/agent/span_sink.h"

namespace stepwell::agent {

class RecordedSamples final : public ThreadSampleSink {
 public:
  // Both outlive this; so do the names of each process until it is left.
  RecordedSamples(SeriesCatalog& catalog, ChunkBuilder& builder)
      : catalog_(catalog), builder_(builder) {}
  // Whether what comes from here on is counted and told as lost instead.
  void SetGivenUp(bool given_up) { given_up_ = given_up; }
  void SetAnchor(const ClockAnchor& anchor) {
    anchor_ = anchor;
    if (trace_.anchor.monotonic_ns == 0) trace_.anchor = anchor;
  }
  // What a trace's times go by; of monotonic 0: none yet.
  const ClockAnchor& trace_anchor() const { return trace_.anchor; }
  // Spans go there, too; null: nowhere. It outlives this, or is taken away.
  void SetTrace(SpanSink* trace) { trace_.sink = trace; }
  // And there, by an anchor of its own: steps that a master asked for.
  void SetCapture(SpanSink* capture, const ClockAnchor& anchor) { capture_ = {capture, anchor}; }
  // Batch of the last step of the process itself that came through here; -1: none yet.
  std::int32_t newest_batch() const { return newest_batch_; }
  // As the process itself recorded them, whoever traces.
  const EpochLog& epochs() const { return epochs_; }
  // One was recorded since this was asked last.
  bool TakeEpochNews() { return std::exchange(has_epoch_news_, false); }
  // The median of its last steps' lengths; 0: none yet.
  std::uint64_t typical_step_ns() const;

  void EnterThread(const RecordedProcess& process, std::uint32_t thread) override;
  void OnThreadId(std::uint32_t thread_id) override { TellThread(thread_id); }
  void LeaveProcess(std::uint64_t number) override;
  void OnStep(const StepTotals& step) override;
  void OnOccurrence(std::uint32_t path, std::uint64_t start_ns, std::uint64_t duration_ns) override;
  void OnRecord(std::uint32_t series, std::uint64_t time_ns, std::int32_t batch,
                double value) override;
  void OnRecordAt(std::uint32_t series, std::int64_t time_us, std::int32_t batch,
                  double value) override;
  void OnScope(std::uint32_t path, std::uint64_t start_ns, std::uint64_t duration_ns,
               std::int32_t batch) override;
  void OnInstant(std::uint32_t path, std::uint64_t time_ns, std::int32_t batch) override;
  void OnLoss(const EventLoss& loss) override;
  bool full() const override { return builder_.full(); }

 private:
  enum class RefKind : std::uint8_t { kStepTotal, kStepCount, kAlone };
  // 0 where the writer has as many series as it may.
  std::uint32_t RefOf(RefKind kind, std::uint32_t name);
  std::uint32_t MakeRef(RefKind kind, std::uint32_t name);
  void TellGivenUp(std::uint64_t count, std::int64_t time_us);
  void AddAlone(std::uint32_t name, std::int64_t time_us, std::int32_t batch, double value);
  // Who is told each span, and what its times go by there.
  struct Tap {
    SpanSink* sink = nullptr;
    ClockAnchor anchor = {};
  };
  // What is given up is another's, who traces it.
  bool is_traced() const {
    return (trace_.sink != nullptr || capture_.sink != nullptr) && !given_up_;
  }
  template <typename Tell>
  void ForEachTap(const Tell& tell) const {
    for (const Tap* tap : {&trace_, &capture_}) {
      if (tap->sink != nullptr) tell(*tap->sink, tap->anchor);
    }
  }
  void TellThread(std::uint32_t thread_id) const;
  void TraceValue(const NameEntry& entry, std::uint64_t time_ns, double value) const;
  void TellLoss(pb::GapCause cause, std::uint64_t count, std::int64_t first_us,
                std::int64_t last_us, std::string_view reason);

  SeriesCatalog& catalog_;
  ChunkBuilder& builder_;
  const NameTable* names_ = nullptr;
  // Its anchor is the first: a trace's times are on one line, however the wall clock is steered meanwhile.
  Tap trace_;
  Tap capture_;
  std::int32_t newest_batch_ = -1;
  EpochLog epochs_;
  bool has_epoch_news_ = false;
  std::array<std::uint64_t, 15> steps_ns_{};  // of the last ones, in turn
  std::size_t step_count_ = 0;
  ClockAnchor anchor_;
  bool given_up_ = false;
  std::uint32_t thread_ = 0;
  std::uint32_t worker_ = spool::kNoWorker;
  // By kind and thread, and name id.
  using Refs = absl::flat_hash_map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t>;
  std::map<std::uint64_t, Refs> refs_by_process_;
  Refs* refs_ = nullptr;  // of the process entered last
  std::vector<RefValue> tick_;
};

}  // namespace stepwell::agent
