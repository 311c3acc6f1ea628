// RecordedRings: what one recording process left in files, names and rings, and how far they have
// been consumed. It stands between the rings and the chunk builder; whether the process lives is for
// RecordedWriter. Confined to the agent's loop.
//
//   STEPWELL_ASSIGN_OR_RETURN(const RecordedHeader header, rings->ReadHeader());   // life first
//   STEPWELL_RETURN_IF_ERROR(rings->Drain(header, Ending::kMoreToCome, sink));
//   rings->TakeProgress(...);    // to the spool, with the samples
//   rings->StoreTails(...);      // after it is written
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/steady_time.h"
#include "client/agent/checkpoint.h"
#include "client/agent/file_descriptor.h"
#include "client/agent/name_table.h"
#include "client/agent/ring_budget.h"
#include "client/agent/ring_folder.h"
#include "client/agent/ring_reader.h"
#include "client/agent/step_aggregator.h"

namespace stepwell::agent {

// Events that were given up before they could be sealed.
struct EventLoss {
  enum class Cause { kRingFull, kNoRing, kNoName, kDamaged, kHidden, kFramesGone };
  Cause cause = Cause::kRingFull;
  // 0 = unknown.
  std::uint64_t event_count = 0;
  std::uint64_t first_ns = 0;
  std::uint64_t last_ns = 0;
};

// Who recorded. Ids of names are its own.
struct RecordedProcess {
  std::uint64_t number = 0;  // unique in one agent
  std::uint32_t worker = spool::kNoWorker;
  const NameTable& names;
};

// A SampleSink that is told whose samples follow.
class ThreadSampleSink : public SampleSink {
 public:
  virtual void EnterThread(const RecordedProcess& process, std::uint32_t thread) = 0;
  // The kernel's number of the thread that was entered last, as it says itself; 0 = not told.
  virtual void OnThreadId(std::uint32_t /*thread_id*/) {}
  // None will follow.
  virtual void LeaveProcess(std::uint64_t number) = 0;
  virtual void OnLoss(const EventLoss& loss) = 0;
  // Enough for one frame: Drain stops soon.
  virtual bool full() const = 0;
};

// As of one look. What was closed, or is dead, changes no more.
struct RecordedHeader {
  // close() was called: the rings are final.
  bool closed = false;
  std::uint32_t ring_count = 0;
  std::uint64_t last_step = 0;
  // As the process itself said, in its own PID namespace: unchecked.
  pid_t pid = 0;
  // When the process opened, ended its last step or closed, whichever was last: unchecked.
  std::uint64_t last_sign_ns = 0;
  // Events that never reached a ring.
  std::uint64_t dropped_no_ring = 0;
  std::uint64_t dropped_no_name = 0;
  // Those that the process holds itself: lost where it died.
  std::uint64_t early_count = 0;
  // Of a native profiler: unchecked.
  bool offers_capture = false;
  std::uint64_t capture_answer = 0;

  bool operator==(const RecordedHeader&) const = default;
};

class RecordedRings {
 public:
  // kNotFound: no header yet.
  // `budget` outlives the rings.
  static absl::StatusOr<std::unique_ptr<RecordedRings>> Open(FileDescriptor directory,
                                                             RingFolder folder,
                                                             std::uint32_t worker,
                                                             RingBudget& budget);
  // Goes on where `progress`, the spool's, and the rings' own tails say. Before the first Drain.
  void Recover(RingProgress progress);

  absl::StatusOr<RecordedHeader> ReadHeader() const;
  // Whether a Drain would find what the last one did not: a read of the header and of each ring's.
  bool HasNews() const;
  // Moves what the rings hold into `sink`, until it is full. kFinal = no more events will come.
  enum class Ending { kMoreToCome, kFinal };
  absl::Status Drain(const RecordedHeader& header, Ending ending, ThreadSampleSink& sink);
  // The last Drain left nothing behind in the rings.
  bool drained() const { return drained_; }
  // All that will ever come is in the sink.
  bool ended() const { return ended_; }
  // And all of it is stored: nothing is left but files.
  bool finished() const { return ended_ && threads_.empty(); }

  // How far consumption came since the last call. `urgent` = should be written although no sample
  // goes with it, because a ring is filling up.
  struct Moved {
    bool moved = false;
    bool urgent = false;
  };
  Moved TakeProgress(RingProgress& progress);
  // Frees what a written progress covers.
  void StoreTails(const RingProgress& written);
  // Unlinks the rings that are done with.
  void DropFinished();
  // For the recorder, where it changed. Errors are left for the next visit.
  void StoreAgentState(spool::AgentState state);
  // Whether children that join from here on would be taken no more.
  absl::Status StoreEnded(bool ended);
  void StoreControl(std::uint32_t control);
  // Its file.
  const FileDescriptor& header() const { return header_; }

  int directory() const { return directory_.get(); }
  const RingFolder& folder() const { return folder_; }
  std::uint64_t number() const { return number_; }
  std::uint64_t opened_ns() const { return opened_ns_; }

 private:
  struct Ring {
    RingReader reader;
    RingSlot slot;
    // Where its file lies.
    int directory = -1;
    std::uint64_t read = 0;
    std::uint64_t safe = 0;
    std::uint64_t stored = 0;
    std::uint64_t dropped_told = 0;
    std::uint64_t dropped_last_ns = 0;
    // Something was told that its progress must say, also where its tail stays.
    bool told_moved = false;
    // Left the ring in frames that the spool no longer has, and are not told yet.
    std::uint64_t gone_count = 0;
    // As of the last Drain.
    std::uint32_t state = spool::kRingLive;
    // Succeeded or ended: once safe reaches it, the file may go.
    bool over = false;
  };
  // The rings of one thread, oldest first; the back is the one being written.
  struct Thread {
    std::deque<Ring> rings;
    StepAggregator aggregator;
    // What the aggregator folded, belonging to the rings' safe positions.
    std::string state;
    bool state_moved = false;
    bool ended = false;
  };

  RecordedRings(FileDescriptor directory, RingFolder folder, std::uint32_t worker,
                RingBudget& budget);

  void FindRings(std::uint32_t ring_count);
  // Of those from the first unknown one to before `end`; kResourceExhausted: not now.
  absl::StatusOr<std::vector<std::uint32_t>> ListRings(std::uint32_t end) const;
  // False: not now.
  bool OpenRing(std::uint32_t number);
  void AddRing(RingReader reader, RingSlot slot, int directory);
  // Once a minute: whoever makes files without end does not fill the log.
  void LogRefused(const absl::Status& why);
  absl::StatusOr<RecordedHeader> CopyHeader() const;
  absl::Status ReadNames();
  absl::Status DrainThread(Thread& thread, Ending ending, ThreadSampleSink& sink);
  static bool IsBeyondLap(const Ring& ring, const RingSnapshot& now);
  static void SkipToLastLap(Ring& ring, const RingSnapshot& now, ThreadSampleSink& sink);
  absl::Status DrainRing(Thread& thread, Ring& ring, const RingSnapshot& now,
                         ThreadSampleSink& sink);
  // Looks for names that came meanwhile where an event has one that is not known.
  absl::Status AddEvents(Thread& thread, Ring& ring, const RingReader::Events& read,
                         ThreadSampleSink& sink);
  bool Known(const spool::Event& event) const;
  static void MarkSafe(Thread& thread);
  static void TellDrops(Ring& ring, const RingSnapshot& now, ThreadSampleSink& sink);
  static void TellGone(Ring& ring, ThreadSampleSink& sink);
  void TellLosses(const RecordedHeader& header, Ending ending, ThreadSampleSink& sink);
  void End(ThreadSampleSink& sink);

  const FileDescriptor directory_;
  const RingFolder folder_;
  const std::uint32_t worker_;
  const std::uint64_t number_;
  RingBudget& budget_;
  FileDescriptor header_;
  // As last written into it.
  spool::AgentState state_told_ = spool::kAgentNone;
  FileDescriptor names_file_;
  NameTable names_;
  std::uint64_t opened_ns_ = 0;
  RecordedHeader drained_header_;            // as the last Drain had it
  std::map<std::uint32_t, Thread> threads_;  // by RingHeader::thread
  std::uint32_t rings_found_ = 0;
  std::uint32_t hidden_count_ = 0;
  std::uint32_t refused_count_ = 0;  // since it was last told
  SteadyTime refused_logged_;
  std::uint64_t no_ring_seen_ = 0;
  std::uint64_t no_name_seen_ = 0;
  RingProgress recovered_;
  // Unlinked, and not yet told to the spool.
  std::vector<std::uint32_t> gone_;
  bool drained_ = false;
  bool ended_ = false;
  bool ended_moved_ = false;
};

}  // namespace stepwell::agent
