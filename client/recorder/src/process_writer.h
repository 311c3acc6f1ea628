// ProcessWriter is one opened writer of this process: its spool, its names, its threads, its
// batches, and the maintenance thread, which alone makes rings: one ahead for the next thread that
// records, bigger ones before the small ones are full.
//
// A thread's first event never waits for a file system, whatever the rings lie on. It takes the ring
// that was made ahead. Where several threads begin at once and that one is taken, their events are
// kept in memory until their rings are made, milliseconds later (EarlyEvents): not given up, for
// short threads would lose all they recorded. Past the bound of that memory they are dropped and
// counted; were the process killed meanwhile, the agent counts them: nothing is lost in silence.
//
// A closed one is kept until no thread holds a ring of it; its descriptors go at its Close.
//
// Thread-safe. Locks are taken on first uses and by maintenance, never by a warm recording call.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/recorder/src/agent_starter.h"
#include "client/recorder/src/catalog.h"
#include "client/recorder/src/gate.h"
#include "client/recorder/src/name_log.h"
#include "client/recorder/src/spool_writer.h"
#include "client/recorder/src/thread_recorder.h"

namespace stepwell::recorder {

class ProcessWriter {
 public:
  // `catalog`, the gate's line and `mutex`, which guards the catalog too, outlive the writer.
  // Recording is on when this returns, unless the header's control says otherwise. A forked worker
  // names what it uses, others all they know. REQUIRES: mutex is not held.
  ProcessWriter(std::unique_ptr<SpoolWriter> spool, const Catalog& catalog, std::mutex& mutex,
                GateLine& line, std::uint32_t generation);
  ~ProcessWriter();
  ProcessWriter(const ProcessWriter&) = delete;
  ProcessWriter& operator=(const ProcessWriter&) = delete;

  SpoolWriter& spool() { return *spool_; }
  const SpoolWriter& spool() const { return *spool_; }
  std::uint32_t generation() const { return generation_; }
  const GateLine& gate_line() const { return line_; }

  // --- threads ---
  // Called by the thread itself. REQUIRES: mutex is held, Close has not been called.
  ThreadRecorder* StartThreadLocked(std::uint32_t serial);
  ThreadRecorder* StartThread(std::uint32_t serial) {
    const std::lock_guard lock(mutex_);
    return StartThreadLocked(serial);
  }
  void EndThread(ThreadRecorder* thread);
  // Maintenance sees to it, from its start on, that an agent serves the spool.
  // REQUIRES: before StartMaintenance.
  void LookAfterAgent(std::unique_ptr<AgentStarter> starter) { starter_ = std::move(starter); }
  // Briefly, so that a process that ends at once, without a close, has its agent started, too.
  void AwaitFirstLook() const;
  // For a forked child of this process; null where nobody is to be started.
  std::unique_ptr<AgentStarter> MakeStarterAgain() const {
    return starter_ == nullptr ? nullptr : starter_->MakeAgain();
  }
  // Why no agent can be started; empty while there is hope. Valid after LookAfterAgent.
  std::string AgentTrouble() const { return starter_ == nullptr ? "" : starter_->trouble(); }
  void StartMaintenance();
  // One round: frees drained rings, makes the planned ones. True = some ring is filling up, and the
  // next one could be made.
  bool Maintain();

  // --- for ThreadRecorder ---
  std::uint32_t FindOrAddPath(std::uint32_t parent, std::uint32_t scope);
  std::uint32_t SeriesName(std::uint32_t series) const {
    return series < kSeriesCountMax + 1 ? series_names_[series].load(std::memory_order_acquire)
                                        : spool::kNoName;
  }
  // For one that has no name yet: kNoName where there is no room for it.
  std::uint32_t NameSeries(std::uint32_t series);
  // Serials of its threads begin here: a scope of a lower one began under another writer.
  std::uint32_t serial_first() const { return serial_first_; }
  void CountNoRing() { spool_->header().dropped_no_ring.fetch_add(1, std::memory_order_relaxed); }
  std::atomic<std::uint64_t>& early_count() { return spool_->header().early_count; }
  void CountNoName() { spool_->header().dropped_no_name.fetch_add(1, std::memory_order_relaxed); }
  bool is_on() const { return (line_.word.load(std::memory_order_relaxed) & Gate::kOn) != 0; }
  // Changes whenever recording is switched on or off.
  std::uint32_t pause_count() const {
    return stepping_.pause_count.load(std::memory_order_relaxed);
  }
  // Follows the agent's control word.
  void ObserveControl();
  // Gives the ended step its batch and stamps it into the header. `wish` < 0 = the next one; `thread` = the
  // serial of the one that ends it.
  std::int32_t EndStep(std::int32_t wish, std::uint64_t now_ns, std::uint32_t thread);
  // The step that is opened without one ended before it follows batch `last`, if that is >= 0.
  void SkipToBatch(std::int32_t last);

  // Gives the series its name in this writer. REQUIRES: mutex is held.
  void AddSeriesLocked(std::uint32_t series);

  std::uint64_t dropped_count();
  // Stops recording and maintenance and waits for the ack. True = all of it is stored. A call that
  // passed the gate before lands in its ring; one that comes later is counted as dropped.
  bool Close(std::int64_t timeout_ms);
  // Close in its parts, of one thread: a caller may do something between them. False = closed before.
  bool Finish(LateCalls late = LateCalls::kCount);
  enum class Ack { kStored, kNotYet, kNever };
  // Starts an agent where there is none. REQUIRES: Finish, and no Release yet.
  Ack AskAck();
  // As far as an agent has said something.
  static Ack AckIn(const spool::WriterHeader& header);
  // Asks until something is known, at most so long.
  static Ack AwaitAckOf(const std::function<Ack()>& ask, std::int64_t timeout_ms);
  void Release();
  // Closed, and no thread has a ring of it: nobody will ask for it again. REQUIRES: mutex is held.
  bool IsOverLocked() const { return is_over_ && threads_.empty(); }

 private:
  // What a thread that ended recorded before there was a ring for it.
  struct Orphan {
    Ring::Spec spec;
    std::vector<spool::Event> events;
  };
  // What the end of a step reads and writes beside its thread's own, in one line of the cache.
  struct alignas(64) Stepping {
    spool::WriterHeader* header = nullptr;  // the spool's
    // Steps that ended, modulo 2^32, << 32 | the batch of the next one: one word, for threads may end
    // theirs at once.
    std::atomic<std::uint64_t> ended{0};
    std::atomic<std::uint32_t> pause_count{0};
    std::atomic<std::uint32_t> thread{0};  // the one whose steps end, 0 = none yet
    // As last seen; what nobody asks for is told anew.
    std::atomic<std::uint64_t> capture_request{~std::uint64_t{0}};
  };
  void StampOfMany(std::uint64_t stamp, std::uint32_t thread);
  bool LooksAfterAgent() const;
  void StopMaintenance();
  // Nobody came for this writer, and nobody will.
  bool IsHopeless(std::uint64_t now_ns) const;
  // Until each call that passed the gate has returned.
  void AwaitCallsOnTheirWay();
  void MakeSpare();
  // False = no ring could be made: they are kept for the next round.
  bool PlaceOrphan(Orphan orphan);
  void PlaceLastEvents();
  void EndRingLocked(std::unique_ptr<Ring> ring);
  void RetireLocked(std::unique_ptr<Ring> ring);
  void FreeDrainedLocked();
  // All from `first` on.
  void FreeLocked(std::vector<std::unique_ptr<Ring>>::iterator first);
  void RunMaintenance();

  // Constant after construction.
  const std::unique_ptr<SpoolWriter> spool_;
  const Catalog& catalog_;
  std::mutex& mutex_;
  GateLine& line_;
  const std::uint32_t generation_;

  Stepping stepping_;

  std::array<std::atomic<std::uint32_t>, kSeriesCountMax + 1> series_names_{};

  // Guarded by mutex_.
  NameLog names_;
  std::list<std::unique_ptr<ThreadRecorder>> threads_;
  std::vector<std::unique_ptr<Ring>> retired_;
  std::uint64_t dropped_of_freed_ = 0;
  std::uint32_t thread_count_ = 0;
  std::uint32_t serial_first_ = 0;  // constant once a thread records
  std::unique_ptr<Ring> spare_;     // for the next thread, its number already in it
  std::vector<Orphan> orphans_;
  bool is_work_waiting_ = false;
  bool is_stopping_ = false;
  bool is_final_ = false;  // no ring is made any more
  bool is_over_ = false;   // its close has returned, and its maintenance thread, too

  // Null: nobody is to be started. Dropped where its thread hangs.
  std::unique_ptr<AgentStarter> starter_;
  std::condition_variable wake_;
  std::thread maintenance_;
  // Of the thread that closes.
  bool is_left_behind_ = false;  // maintenance hangs
  bool is_released_ = false;
  std::uint64_t finished_ns_ = 0;
};

}  // namespace stepwell::recorder
