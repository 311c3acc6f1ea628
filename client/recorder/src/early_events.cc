#include "client/recorder/src/early_events.h"

#include <chrono>
#include <thread>
#include <utility>

#include "client/recorder/src/monotonic.h"

namespace stepwell::recorder {

EarlyEvents::Kept EarlyEvents::Add(const spool::Event& event, const std::atomic<Ring*>& offered) {
  const std::lock_guard lock(mutex_);
  if (offered.load(std::memory_order_acquire) != nullptr) return Kept::kRingReady;
  if (count_.fetch_add(1, std::memory_order_relaxed) < kEarlyCountMax) {
    try {
      events_.push_back(event);
      return Kept::kYes;
    } catch (...) {
      // Out of memory: as if there were no room.
    }
  }
  count_.fetch_sub(1, std::memory_order_relaxed);
  return Kept::kNoRoom;
}

void EarlyEvents::MoveTo(std::unique_ptr<Ring> ring, std::atomic<Ring*>& offered) {
  for (;;) {
    std::vector<spool::Event> taken;
    {
      const std::lock_guard lock(mutex_);
      if (events_.empty()) {
        offered.store(ring.release(), std::memory_order_release);
        return;
      }
      taken.swap(events_);
    }
    PushEarly(taken, *ring, count_);
  }
}

std::vector<spool::Event> EarlyEvents::TakeAll() {
  // Held for one event; for ever only by a thread that exits out of a signal handler within Add.
  for (int i = 0; i < 100; ++i) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock.owns_lock()) return std::exchange(events_, {});
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return {};
}

void PushEarly(const std::vector<spool::Event>& events, Ring& ring,
               std::atomic<std::uint64_t>& count) {
  RingProducer producer;
  producer.Attach(&ring);
  for (const spool::Event& event : events) {
    if (!producer.Push(event)) producer.CountDrop(MonotonicNs());
  }
  // Afterwards: a process that is killed here has told of too many rather than too few.
  count.fetch_sub(events.size(), std::memory_order_release);
}

}  // namespace stepwell::recorder
