// EarlyEvents keeps what a thread records while its first ring is still being made, so that its
// first event waits for no disk and is not given up. It stands before the ring; what it holds is
// the process's own memory and counted in WriterHeader::early_count: were the process killed now,
// the agent would know how much is lost.
//
// The recording thread adds, the maintenance thread moves. The lock is held for one event, or for
// the exchange of a pointer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "client/recorder/src/ring.h"

namespace stepwell::recorder {

// Of all threads of a process together: 2 MiB.
inline constexpr std::uint64_t kEarlyCountMax = 65536;

class EarlyEvents {
 public:
  // `count`, of the whole process, outlives this.
  explicit EarlyEvents(std::atomic<std::uint64_t>& count) : count_(count) {}

  enum class Kept {
    kYes,
    kNoRoom,
    kRingReady,  // not kept: `offered` holds the thread's ring by now
  };
  Kept Add(const spool::Event& event, const std::atomic<Ring*>& offered);
  // Moves all into `ring`, then offers it: nothing stays behind.
  void MoveTo(std::unique_ptr<Ring> ring, std::atomic<Ring*>& offered);
  // Still counted: PushEarly must follow. Empty also where the lock is not to be had: those stay
  // counted, and the agent declares them.
  std::vector<spool::Event> TakeAll();

 private:
  std::atomic<std::uint64_t>& count_;
  std::mutex mutex_;
  std::vector<spool::Event> events_;  // guarded by mutex_
};

// Into a ring that no thread pushes to. What finds no room is counted there.
void PushEarly(const std::vector<spool::Event>& events, Ring& ring,
               std::atomic<std::uint64_t>& count);

}  // namespace stepwell::recorder
