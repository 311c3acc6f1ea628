// RingReader: one ring file of a recorder, read with pread alone. The recorder's memory is never
// mapped and never trusted: what is read is copied first and checked after. Confined to one thread.
//
//   STEPWELL_ASSIGN_OR_RETURN(auto ring, RingReader::Open(directory, 0, uid));
//   STEPWELL_ASSIGN_OR_RETURN(RingSnapshot now, ring.ReadSnapshot());
//   STEPWELL_ASSIGN_OR_RETURN(auto events, ring.ReadEvents(from, now.head));
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "client/agent/file_descriptor.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {

// What changes in a ring's header.
struct RingSnapshot {
  std::uint32_t state = 0;
  std::uint32_t next_ring = spool::kNoRing;
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
  std::uint64_t dropped = 0;
  std::uint64_t dropped_first_ns = 0;
  std::uint64_t dropped_last_ns = 0;
  std::uint32_t thread_id = 0;  // unchecked; 0 = not told
};

inline constexpr spool::EventKind kDamagedEvent{};

class RingReader {
 public:
  // kNotFound: the ring was unlinked. kInvalidArgument: the file is no ring.
  static absl::StatusOr<RingReader> Open(int directory, std::uint32_t number);

  // Nothing is added after the state left kRingLive: the head is then the last.
  absl::StatusOr<RingSnapshot> ReadSnapshot() const;
  struct Events {
    // One per position from `from` on. A damaged one (wrong stamp or kind) has kind kDamagedEvent.
    std::vector<spool::Event> events;
    std::uint64_t damaged_count = 0;
  };
  // REQUIRES: from <= to. Reads less than asked where `to` lies further than one lap, or behind what
  // the ring holds.
  absl::StatusOr<Events> ReadEvents(std::uint64_t from, std::uint64_t to) const;
  // Frees the events below for the recorder.
  absl::Status StoreTail(std::uint64_t tail) const;

  std::uint32_t number() const { return number_; }
  std::uint32_t capacity() const { return capacity_; }
  std::uint32_t thread() const { return thread_; }
  std::uint32_t worker() const { return worker_; }

 private:
  RingReader() = default;
  absl::StatusOr<RingSnapshot> CopySnapshot() const;
  absl::Status CopyEvents(std::uint64_t from, std::span<spool::Event> events) const;

  FileDescriptor file_;
  std::uint32_t number_ = 0;
  std::uint32_t capacity_ = 0;
  std::uint32_t thread_ = 0;
  std::uint32_t worker_ = spool::kNoWorker;
};

}  // namespace stepwell::agent
