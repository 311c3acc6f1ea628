#include "client/recorder/src/ring.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "client/recorder/src/file_room.h"

namespace stepwell::recorder {
std::unique_ptr<Ring> Ring::Map(int fd, const Spec& spec) {
  return Format(MapNewFile(fd, spool::RingFileBytes(spec.capacity)), spec);
}

std::unique_ptr<Ring> Ring::MapAnonymous(const Spec& spec) {
  return Format(MapPrivate(spool::RingFileBytes(spec.capacity)), spec);
}

std::unique_ptr<Ring> Ring::Format(void* mapped, const Spec& spec) {
  if (mapped == nullptr) return nullptr;
  auto* header = new (mapped) spool::RingHeader{};
  std::memcpy(header->magic, spool::kRingMagic, sizeof(header->magic));
  header->format_version = spool::kFormatVersion;
  header->capacity = spec.capacity;
  header->ring = spec.ring;
  header->previous = spec.previous;
  header->thread = spec.thread;
  header->worker = spec.worker;
  header->created_ns = spec.created_ns;
  std::memcpy(header->thread_name, spec.thread_name, sizeof(header->thread_name));
  header->thread_id = spec.thread_id;
  header->next_ring.store(spool::kNoRing, std::memory_order_relaxed);
  header->state.store(spool::kRingLive, std::memory_order_release);
  const std::size_t bytes = spool::RingFileBytes(spec.capacity);
  std::unique_ptr<Ring> ring(new (std::nothrow) Ring(mapped, bytes));
  if (ring == nullptr) munmap(mapped, bytes);
  return ring;
}

Ring::Ring(void* mapped, std::size_t bytes)
    : header_(static_cast<spool::RingHeader*>(mapped)),
      events_(reinterpret_cast<spool::Event*>(static_cast<char*>(mapped) + spool::kPageBytes)),
      bytes_(bytes) {}

Ring::~Ring() { munmap(header_, bytes_); }

bool Ring::IsDrained() const {
  return header_->tail.load(std::memory_order_acquire) ==
         header_->head.load(std::memory_order_acquire);
}

bool Ring::IsFillingUp() const {
  const std::uint64_t tail = header_->tail.load(std::memory_order_relaxed);
  return header_->head.load(std::memory_order_relaxed) - tail > header_->capacity / 2;
}

void RingProducer::Attach(Ring* ring) {
  *this = RingProducer();
  if (ring == nullptr) return;
  ring_ = ring;
  events_ = ring->events();
  published_ = &ring->header().head;
  mask_ = ring->capacity() - 1;
  head_ = ring->header().head.load(std::memory_order_relaxed);
  // Up to here surely without asking for the tail.
  limit_ = ring->capacity() - kStepReserve;
}

bool RingProducer::FindRoom(spool::EventKind kind) {
  if (ring_ == nullptr) return false;
  const std::uint64_t tail = ring_->header().tail.load(std::memory_order_acquire);
  // The page is writable by the agent; a tail that makes no sense is not believed.
  if (tail > tail_ && tail <= head_) tail_ = tail;
  const std::uint64_t end = tail_ + mask_ + 1;
  limit_ = end - kStepReserve;
  const bool is_step = kind == spool::EventKind::kStepBegin || kind == spool::EventKind::kStepEnd;
  return head_ < (is_step ? end : limit_);
}

void RingProducer::CountDrop(std::uint64_t now_ns) {
  spool::RingHeader& header = ring_->header();
  const std::uint64_t dropped = header.dropped.load(std::memory_order_relaxed);
  if (dropped == 0) header.dropped_first_ns.store(now_ns, std::memory_order_relaxed);
  header.dropped_last_ns.store(now_ns, std::memory_order_relaxed);
  header.dropped.store(dropped + 1, std::memory_order_release);
}

}  // namespace stepwell::recorder
