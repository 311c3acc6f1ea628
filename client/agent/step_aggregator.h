// StepAggregator: makes samples of one thread's events. It stands between the rings and the chunk
// builder and decides nothing but this: what belongs to which step. Pure; confined to one thread.
//
//   aggregator.Add(event, sink);           // in ring order
//   if (aggregator.decided()) safe = position + 1;
//
// Events of a step that has not ended are kept, and with them what came after, so that events leave
// in ring order: up to `safe`, all are in the sink, and behind it none is.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {

struct PathTotal {
  std::uint32_t path = 0;
  std::uint64_t count = 0;
  std::uint64_t total_ns = 0;
  std::uint64_t first_start_ns = 0;
};

// A step: one tick at start_ns.
struct StepTotals {
  std::uint64_t start_ns = 0;
  std::uint64_t duration_ns = 0;
  std::int32_t batch = -1;
  // Sorted by path.
  std::span<const PathTotal> paths;
};

// Where samples go. Names are ids of the writer's NameTable.
class SampleSink {
 public:
  virtual ~SampleSink() = default;
  virtual void OnStep(const StepTotals& step) = 0;
  // A scope outside any step, at its own start, without batch.
  virtual void OnOccurrence(std::uint32_t path, std::uint64_t start_ns,
                            std::uint64_t duration_ns) = 0;
  virtual void OnRecord(std::uint32_t series, std::uint64_t time_ns, std::int32_t batch,
                        double value) = 0;
  virtual void OnRecordAt(std::uint32_t series, std::int64_t time_us, std::int32_t batch,
                          double value) = 0;
  // Each scope by itself, once, also where it is part of a step's total: for traces. Those of a step come
  // before its OnStep; one of a step that was too long for its ring comes without batch.
  virtual void OnScope(std::uint32_t path, std::uint64_t start_ns, std::uint64_t duration_ns,
                       std::int32_t batch);
  // For traces alone, and as those.
  virtual void OnInstant(std::uint32_t path, std::uint64_t time_ns, std::int32_t batch);
};

class StepAggregator {
 public:
  void Add(const spool::Event& event, SampleSink& sink);
  // The thread, or its writer, has ended: what is kept lies outside any step.
  void End(SampleSink& sink);

  // Nothing is kept: all events added so far are in the sink.
  bool decided() const { return kept_.empty() && sums_.empty() && records_.empty(); }
  std::size_t kept_count() const { return kept_.size(); }

  // For a step too long for its ring: folds what is kept into sums and gives them as bytes, to be
  // written beside the frame. After it, the events added so far may leave the ring.
  std::string FoldKept(SampleSink& sink);
  // Takes over sums of an earlier agent. False where the bytes are none.
  bool Restore(std::string_view state);

 private:
  void Keep(const spool::Event& event, SampleSink& sink);
  void EndStep(const spool::Event& step_end, SampleSink& sink);
  void FlushOutside(SampleSink& sink);
  static void EmitOutside(const spool::Event& event, SampleSink& sink);
  void AddToSums(const spool::Event& scope);

  // In ring order; kInStep ones wait for their step, others for those before them.
  std::vector<spool::Event> kept_;
  // Folded earlier: sums by path, and records that still lack their batch.
  absl::flat_hash_map<std::uint32_t, PathTotal> sums_;
  std::vector<spool::Event> records_;
};

}  // namespace stepwell::agent
