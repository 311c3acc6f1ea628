// Runtime is what a process has of the recorder whether a writer is open or not: the gate, the
// catalog of names, the writer that is open now, and what each thread records with.
//
// Thread-safe. Never destroyed: threads record while the process exits.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/recorder/include/stepwell/recorder.h"
#include "client/recorder/src/catalog.h"
#include "client/recorder/src/closing.h"
#include "client/recorder/src/gate.h"
#include "client/recorder/src/open_wishes.h"
#include "client/recorder/src/process_writer.h"
#include "client/recorder/src/trace_note.h"

namespace stepwell::recorder {

// What the calling thread records with, valid for one generation of the gate.
struct ThreadSlot {
  ThreadRecorder* recorder;
  std::uint32_t generation;
};

// A native profiler that is wanted; request 0: none is.
struct CaptureWish {
  std::uint32_t request = 0;
  std::int32_t first_batch = 0;
  std::int32_t step_count = 0;
};

class Runtime {
 public:
  static Runtime& Get();

  stepwell_state Open(OpenWishes wishes);
  bool Close(std::int64_t timeout_ms);
  // Without the wait; null where nothing is open.
  std::unique_ptr<Closing> BeginClose(LateCalls late);
  // A call of a thread that never recorded under this generation, whose writer is closing.
  void CountLate(std::uint32_t generation);
  stepwell_state state();
  const char* message();
  std::uint64_t dropped_count();

  // A file that is to be uploaded for the writer that is open, or was last. False where no agent would take it.
  bool UploadTrace(const TraceNote& note);

  // Of this process' writers, from now on.
  void OfferCapture(bool is_offered);
  CaptureWish WantedCapture();
  void AnswerCapture(std::uint32_t request, std::uint32_t outcome, std::uint32_t step_count);

  std::uint32_t DefineScope(ScopeDefinition scope);
  std::uint32_t DefineSeries(SeriesDefinition series);

  // The recorder of the calling thread for the writer of `generation`, entered; null if there can be
  // none. In a forked child the first call joins the parent's writer as a worker, which touches the
  // spool directory.
  // REQUIRES: the gate is open with this generation.
  ThreadRecorder* StartThread(ThreadSlot& slot, std::uint32_t generation);

 private:
  Runtime();
  static void EndThread(void* recorder);
  // Closes what the program left open. Registered with atexit at the first open.
  static void CloseAtExit();
  bool CloseOpened(std::int64_t timeout_ms);
  // The writer that is open, which is it no longer; null = none. REQUIRES: opening_ is held.
  std::shared_ptr<ProcessWriter> TakeOpen();
  static void BeforeFork();
  static void AfterForkInChild();
  // It has neither joined its parent's writer nor opened one.
  bool IsForkedChild() const { return page_->is_own.load(std::memory_order_relaxed) == 0; }
  // What a forked child records goes to its parent's writer. REQUIRES: mutex_ is held.
  bool WillJoinLocked() const;
  // False where it cannot.
  bool JoinParent(std::uint32_t generation);
  enum class Join { kJoined, kRefused, kOver };
  Join TryJoin(std::uint32_t generation);
  // A call of a child that cannot join: told through the header that it shares with its parent.
  void CountLost();
  std::uint32_t CurrentGeneration(std::uint32_t otherwise);
  void MakePage();
  void ForgetParentLocked();
  // Those that nobody will ask for again.
  void DropWritersThatAreOver();
  void UseLocked(std::unique_ptr<ProcessWriter> writer, stepwell_state state, std::string message);

  std::mutex opening_;        // one open or close at a time; held while the file system is used
  std::mutex mutex_;          // everything below, and what ProcessWriter guards with it
  GateLine* page_ = nullptr;  // of its own, which the kernel zeroes in a forked child
  pthread_key_t thread_key_{};
  bool has_thread_key_ = false;  // without one nothing opens
  Catalog catalog_;
  // The newest, and before it those of which threads hold rings still.
  std::vector<std::shared_ptr<ProcessWriter>> writers_;
  ProcessWriter* open_ = nullptr;  // one of them, or none
  std::uint32_t generation_ = 0;
  std::uint32_t thread_serial_ = 0;
  bool closes_at_exit_ = false;
  bool offers_capture_ = false;
  std::uint32_t gate_at_fork_ = 0;  // what the kernel wipes in the child
  bool cannot_join_ = false;
  OpenWishes opened_;        // as resolved, for a child that finds the writer ended
  std::string traced_path_;  // the directory of the writer that traces belong to; empty = none
  stepwell_state state_ = STEPWELL_CLOSED;
  std::string message_ = "not opened";
  std::deque<std::string> told_;  // answers of message() since the last open, which callers hold
};

}  // namespace stepwell::recorder
