// RecordedWriter: the directory of one recording process as the agent sees it: is the process
// alive, what do its rings hold, how far have they been consumed. It stands between the rings and
// the chunk builder. Confined to the agent's loop.
//
//   STEPWELL_ASSIGN_OR_RETURN(const WriterStatus status, writer->ReadStatus());   // life first
//   STEPWELL_RETURN_IF_ERROR(writer->Drain(sink));
//   const Checkpoint checkpoint = writer->TakeCheckpoint();  // to the spool, with the samples
//   writer->StoreTails(checkpoint);                          // after it is written
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "client/agent/checkpoint.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/name_table.h"
#include "client/agent/ring_reader.h"
#include "client/agent/step_aggregator.h"

namespace stepwell::agent {

struct WriterStatus {
  bool alive = false;
  // 0 = not known: dead, or in a PID namespace that the agent does not see.
  pid_t pid = 0;
  // close() was called: the rings are final.
  bool closed = false;
  std::uint32_t ring_count = 0;
  std::uint64_t last_step = 0;
};

// Events that were given up before they could be sealed.
struct EventLoss {
  enum class Cause { kRingFull, kNoRing, kNoName, kDamaged };
  Cause cause = Cause::kRingFull;
  std::uint64_t event_count = 0;
  // 0 = unknown.
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
};

// A SampleSink that is told whose samples follow.
class ThreadSampleSink : public SampleSink {
 public:
  virtual void EnterThread(std::uint32_t thread, std::uint32_t worker) = 0;
  virtual void OnLoss(const EventLoss& loss) = 0;
  // Enough for one frame: Drain stops soon.
  virtual bool full() const = 0;
};

class RecordedWriter {
 public:
  // Goes on where `checkpoint`, the spool's, and the rings' own tails say.
  static absl::StatusOr<std::unique_ptr<RecordedWriter>> Open(FileDescriptor directory,
                                                              Checkpoint checkpoint);

  // The lock is asked before the header is read: a writer found dead is then drained completely.
  absl::StatusOr<WriterStatus> ReadStatus();
  // Moves what the rings hold into `sink`, until it is full. `final` = no more events will come.
  enum class Ending { kMoreToCome, kFinal };
  absl::Status Drain(const WriterStatus& status, Ending ending, ThreadSampleSink& sink);
  // The last Drain left nothing behind in the rings.
  bool drained() const { return drained_; }

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
  // AgentState and the time of this visit, for the recorder. Errors are left for the next visit.
  void StoreAgentState(spool::AgentState state);
  void StoreControl(std::uint32_t control);

  const NameTable& names() const { return names_; }

 private:
  struct Ring {
    RingReader reader;
    std::uint64_t read = 0;
    std::uint64_t safe = 0;
    std::uint64_t stored = 0;
    std::uint64_t dropped_told = 0;
    std::uint64_t dropped_last_ns = 0;
    bool dropped_moved = false;
    // Succeeded or ended: once safe reaches it, the file may go.
    bool over = false;
  };
  // The rings of one thread, oldest first; the back is the one being written.
  struct Thread {
    std::uint32_t worker = spool::kNoWorker;
    std::deque<Ring> rings;
    StepAggregator aggregator;
    // What the aggregator folded, belonging to the rings' safe positions.
    std::string state;
    bool state_moved = false;
    bool ended = false;
  };

  explicit RecordedWriter(FileDescriptor directory) : directory_(std::move(directory)) {}

  void FindRings(std::uint32_t ring_count);
  void AddRing(RingReader reader);
  absl::Status ReadNames();
  absl::Status DrainThread(Thread& thread, Ending ending, ThreadSampleSink& sink);
  absl::Status DrainRing(Thread& thread, Ring& ring, ThreadSampleSink& sink);
  void AddEvents(Thread& thread, Ring& ring, const RingReader::Events& read,
                 ThreadSampleSink& sink);
  bool Known(const spool::Event& event) const;
  static void MarkSafe(Thread& thread);
  static void TellDrops(Ring& ring, const RingSnapshot& now, ThreadSampleSink& sink);

  const FileDescriptor directory_;
  FileDescriptor lock_;
  FileDescriptor header_;
  FileDescriptor names_file_;
  NameTable names_;
  std::map<std::uint32_t, Thread> threads_;  // by RingHeader::thread
  std::uint32_t rings_found_ = 0;
  std::uint64_t no_ring_seen_ = 0;
  std::uint64_t no_name_seen_ = 0;
  Checkpoint recovered_;
  // Unlinked, and not yet told to the spool.
  std::vector<std::uint32_t> gone_;
  bool drained_ = false;
};

}  // namespace stepwell::agent
