// Ring is one thread's mapped event buffer; RingProducer is the thread's end of it.
// It stands at the very beginning of the line: what is pushed here outlives the process.
//
//   std::unique_ptr<Ring> ring = Ring::MapAnonymous(spec);       // or Map(fd, spec) for a file
//   RingProducer producer;
//   producer.Attach(ring.get());
//   producer.Push({.time = start, .value = duration, .name = path, .kind = EventKind::kScope});
//
// One thread pushes, one process reads (by the file, see spool_format.h). A push is plain stores
// and one release store: no lock, no allocation, no system call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "client/recorder/src/spool_format.h"

namespace stepwell::recorder {

class Ring {
 public:
  struct Spec {
    std::uint32_t capacity = 0;  // events. REQUIRES: a power of two above kStepReserve.
    std::uint32_t ring = 0;
    std::uint32_t previous = spool::kNoRing;
    std::uint32_t thread = 0;
    std::uint32_t worker = spool::kNoWorker;
    std::uint64_t created_ns = 0;
    char thread_name[16] = {};
    std::uint32_t thread_id = 0;
  };

  // Allocates the blocks of the empty file `fd`, maps and touches them. Blocks on the file system.
  // Null if there is no room. Does not close `fd`.
  static std::unique_ptr<Ring> Map(int fd, const Spec& spec);
  // The same without a file: recorded into memory that nobody reads.
  static std::unique_ptr<Ring> MapAnonymous(const Spec& spec);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  spool::RingHeader& header() { return *header_; }
  spool::Event* events() { return events_; }
  std::uint32_t capacity() const { return header_->capacity; }
  std::size_t bytes() const { return bytes_; }
  // Everything pushed was taken. Thread-safe.
  bool IsDrained() const;
  // Filled beyond half, as seen from any thread.
  bool IsFillingUp() const;

 private:
  Ring(void* mapped, std::size_t bytes);
  static std::unique_ptr<Ring> Format(void* mapped, const Spec& spec);

  spool::RingHeader* header_;
  spool::Event* events_;
  std::size_t bytes_;
};

// Confined to the recording thread.
class RingProducer {
 public:
  // Slots that only step events may use: a step whose end was dropped spoils its neighbour, a lost
  // scope only its own total.
  static constexpr std::uint64_t kStepReserve = 64;

  // `ring` outlives the producer or the next Attach. Null = everything is refused. Goes on behind
  // what the ring holds.
  void Attach(Ring* ring);
  Ring* ring() const { return ring_; }

  // False = full; the caller counts. `event.stamp` is filled in here.
  bool Push(const spool::Event& event) {
    if (head_ >= limit_ && !FindRoom(event.kind)) [[unlikely]] {
      return false;
    }
    spool::Event& slot = events_[head_ & mask_];
    ++head_;
    // Field by field: the event then never exists in memory, and its copy never waits for its stores.
    slot.time = event.time;
    slot.value = event.value;
    slot.name = event.name;
    slot.batch = event.batch;
    slot.kind = event.kind;
    slot.flags = event.flags;
    slot.depth = event.depth;
    slot.stamp = static_cast<std::uint32_t>(head_);
    published_->store(head_, std::memory_order_release);
    return true;
  }

  // Counts one event that found the ring full. REQUIRES: ring() is not null.
  void CountDrop(std::uint64_t now_ns);

 private:
  bool FindRoom(spool::EventKind kind);

  // What a push reads, side by side.
  spool::Event* events_ = nullptr;
  std::atomic<std::uint64_t>* published_ = nullptr;  // the ring's head
  std::uint64_t mask_ = 0;
  std::uint64_t head_ = 0;
  std::uint64_t limit_ = 0;  // no look at the agent's tail is needed below this

  Ring* ring_ = nullptr;
  std::uint64_t tail_ = 0;  // the agent's, as last seen
};

}  // namespace stepwell::recorder
