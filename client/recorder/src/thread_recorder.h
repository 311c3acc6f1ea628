// ThreadRecorder is what one thread records with: its ring, the scopes open on it, its step.
// It decides here, where it is known for certain, what belongs to a step and under which path.
//
// What they read lies in few lines of the cache: between two calls a training's own work goes through it.
// Its hot calls are confined to the recording thread; those of the maintenance thread say so.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "client/recorder/include/stepwell/recorder.h"
#include "client/recorder/src/early_events.h"
#include "client/recorder/src/gate.h"
#include "client/recorder/src/hot_clock.h"
#include "client/recorder/src/path_table.h"
#include "client/recorder/src/ring.h"

namespace stepwell::recorder {

class ProcessWriter;

// All of it lies on one page: where that one is must be looked up, too.
class alignas(2048) ThreadRecorder {
 public:
  // `process` outlives the recorder. `ring` was made ahead, or is null: then events are kept in
  // memory until one is offered. `serial` is unique in the process, across writers.
  ThreadRecorder(ProcessWriter& process, std::unique_ptr<Ring> ring, std::uint32_t thread,
                 std::uint32_t serial);
  ~ThreadRecorder();
  ThreadRecorder(const ThreadRecorder&) = delete;
  ThreadRecorder& operator=(const ThreadRecorder&) = delete;

  void BeginScope(stepwell_scope& scope, std::uint32_t name);
  // One that lies in none, and in which none lies.
  void BeginScopeApart(stepwell_scope& scope, std::uint32_t name);
  // How long it took, in nanoseconds; 0 = it is not recorded.
  std::uint64_t EndScope(const stepwell_scope& scope);
  void Record(std::uint32_t series, double value);
  void RecordAt(std::uint32_t series, std::int32_t batch, std::int64_t time_us, double value);
  void AddInstant(std::uint32_t name);
  void BeginStep();
  void EndStep(std::int32_t batch);
  // What was recorded since the step began lies outside any, as does what comes next.
  void LeaveStep();
  // Of the innermost open scope, kNoName = none.
  std::uint32_t path() const { return path_; }
  // Its name, 0 = none.
  std::uint32_t InnermostScope() const {
    return path_ == spool::kNoName ? 0 : paths_.ScopeOf(path_);
  }

  // Around every call above: a close waits for calls that are on their way. After Enter the gate is
  // looked at again, for the close may have begun before it was seen (thread_barrier.h).
  void Enter() {
    is_entered_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  void Leave() { is_entered_.store(false, std::memory_order_release); }
  bool is_entered() const { return is_entered_.load(std::memory_order_acquire); }
  // Counts a call that came after the close had begun.
  void CountLate();
  const GateWord& gate() const { return line_.word; }
  std::uint32_t generation() const { return generation_; }

  ProcessWriter& process() { return process_; }
  std::uint32_t thread() const { return thread_; }

  // --- maintenance thread ---
  static Ring::Spec FirstRing(std::uint32_t thread);
  // The ring that should be made now, capacity 0 = none. Free the retired one first.
  Ring::Spec PlanNextRing() const;
  void OfferRing(std::unique_ptr<Ring> ring);
  // What waits for a ring. They are the thread's next events: PushEarly must follow.
  std::vector<spool::Event> TakeEarly() { return early_.TakeAll(); }
  std::unique_ptr<Ring> TakeRetired();
  std::uint64_t dropped_count() const;
  Ring* current_ring() const { return current_.load(std::memory_order_acquire); }

  // Every ring of an ended thread; the recorder must not be used afterwards.
  struct Rings {
    std::unique_ptr<Ring> current, offered, retired;
    // Without a ring of any kind.
    std::vector<spool::Event> early;
  };
  Rings End();

 private:
  void Add(const spool::Event& event, std::uint64_t now_ns);
  // By value: only the rare way pays for an event in memory.
  void AddToNextRing(spool::Event event, std::uint64_t now_ns);
  std::uint32_t FindPath(std::uint32_t parent, std::uint32_t scope);
  std::uint32_t AddPath(std::uint32_t parent, std::uint32_t scope);
  void CountNoName();
  void AddStepBegin(std::uint64_t now_ns);
  // Of one that was begun apart, on another thread, or across a step's boundary, where nesting begins anew.
  // False = it began under another writer.
  bool IsOfThisWriter(const stepwell_scope& scope, spool::Event& event) const;
  // kNoName, counted, where there is no room for it.
  std::uint32_t NameAtFirstUse(std::uint32_t series);
  std::uint64_t NowNs() { return clock_.NowNs(line_.clock); }
  bool is_on() const { return (line_.word.load(std::memory_order_relaxed) & Gate::kOn) != 0; }
  void OpenStep(std::uint64_t now_ns);
  spool::Event StepBegin() const;
  spool::Event StepEnd(std::uint64_t now_ns, std::int32_t batch) const;
  std::uint8_t InStepFlag() const { return is_step_open_ ? spool::kInStep : std::uint8_t{0}; }

  // Confined to the recording thread, but for what a close reads and what never changes. The first line is
  // what the begin of a scope reads, with the third its end; the second belongs to a step's boundaries.
  std::atomic<bool> is_entered_{false};  // read by a close
  bool is_step_open_ = false;
  std::uint16_t depth_ = 0;
  std::uint32_t path_ = spool::kNoName;  // of the innermost open scope, since the step's boundary
  const GateLine& line_;
  const std::uint32_t generation_;
  const std::uint32_t serial_;
  std::uint32_t step_ = 0;  // changes at each boundary
  ThreadClock clock_;
  PathTable paths_;
  std::uint32_t step_pauses_ = 0;
  std::uint64_t step_start_ns_ = 0;
  std::uint64_t step_drops_ = 0;
  alignas(64) RingProducer producer_;
  ProcessWriter& process_;
  std::uint64_t drops_ = 0;
  const std::uint32_t thread_;

  // Handed between the recording and the maintenance thread. Owned.
  std::atomic<Ring*> current_{nullptr};
  std::atomic<Ring*> offered_{nullptr};
  std::atomic<Ring*> retired_{nullptr};
  EarlyEvents early_;
  char thread_name_[16] = {};
  const std::uint32_t thread_id_;
};

}  // namespace stepwell::recorder
