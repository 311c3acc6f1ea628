// RecordedWriter: the directory of one writer as the agent sees it: do its processes live, what do
// their rings hold, how far have they been consumed. Confined to the agent's loop.
//
//   STEPWELL_ASSIGN_OR_RETURN(const WriterStatus status, writer->ReadStatus());   // life first
//   STEPWELL_RETURN_IF_ERROR(writer->Drain(status, ending, sink));
//   const Checkpoint checkpoint = writer->TakeProgress().checkpoint;  // to the spool, with the samples
//   writer->StoreTails(checkpoint);                                   // after it is written
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "client/agent/checkpoint.h"
#include "client/agent/recorded_rings.h"
#include "client/agent/worker_rings.h"
#include "client/agent/writer_lock.h"

namespace stepwell::agent {

struct WriterStatus {
  // Of the process that opened the writer.
  bool alive = false;
  // 0 = not known: dead, or in a PID namespace that the agent does not see.
  pid_t pid = 0;
  RecordedHeader own;  // of that process
  // Of that process, or of a worker that outlives it.
  std::uint64_t last_step = 0;
  // Asked only where that process is over: while it records, its writer lives.
  bool workers_alive = false;

  bool records() const { return alive && !own.closed; }
};

class RecordedWriter {
 public:
  using Ending = RecordedRings::Ending;

  // Goes on where `checkpoint`, the spool's, and the rings' own tails say. `budget` outlives it.
  static absl::StatusOr<std::unique_ptr<RecordedWriter>> Open(
      FileDescriptor directory, Checkpoint checkpoint, RingFolder folder = RingFolder(),
      RingBudget& budget = RingBudget::Unlimited());

  // The lock is asked before any header is read: who is found dead is then drained completely.
  absl::StatusOr<WriterStatus> ReadStatus();
  // Moves what the rings hold into `sink`, until it is full. `ending` is that of the process that
  // opened the writer; its workers have their own.
  absl::Status Drain(const WriterStatus& status, Ending ending, ThreadSampleSink& sink);
  // Whether ReadStatus and Drain would find what they did not last time, but for the death of a worker.
  bool HasNews();
  // The last Drain left nothing behind in the rings.
  bool drained() const { return rings_->drained() && workers_.drained(); }
  // All that the process which opened the writer recorded is in the sink.
  bool own_ended() const { return rings_->ended(); }

  // How far consumption came since the last call; `urgent` = should be written although no sample
  // goes with it, because a ring is filling up.
  struct Progress {
    Checkpoint checkpoint;
    bool moved = false;
    bool urgent = false;
  };
  Progress TakeProgress();
  // Frees what a written checkpoint covers, and unlinks rings that are done with.
  void StoreTails(const Checkpoint& checkpoint);
  // For the process that opened the writer.
  void StoreAgentState(spool::AgentState state) { rings_->StoreAgentState(state); }
  // Whether this writer is over for children that come from here on: those that came before are found
  // by the next ReadStatus.
  absl::Status StoreEnded(bool ended) { return rings_->StoreEnded(ended); }
  // For all.
  void StoreControl(std::uint32_t control);

  // For the process that opened the writer. request 0: no native profiler is wanted any more.
  void StoreCapture(std::uint32_t request, std::int32_t first_batch, std::int32_t step_count);

  WorkerRings& workers() { return workers_; }
  const WorkerRings& workers() const { return workers_; }

 private:
  RecordedWriter(WriterLock lock, std::unique_ptr<RecordedRings> rings, RingBudget& budget,
                 std::map<WorkerKey, std::optional<RingProgress>> workers);

  bool MayTakeItsLockAgain(const WriterStatus& status);

  const WriterLock lock_;
  const std::unique_ptr<RecordedRings> rings_;
  WorkerRings workers_;
  bool was_alive_ = false;
  // As the lock said at the last visit.
  bool held_its_lock_ = false;
  std::optional<std::chrono::steady_clock::time_point> lock_lost_at_;
};

}  // namespace stepwell::agent
