#include "client/agent/ring_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "client/agent/header_field.h"

namespace stepwell::agent {
namespace {

#define STEPWELL_RING_FIELD(type, header, name) \
  HeaderField<type>(header, offsetof(spool::RingHeader, name))

bool IsKind(spool::EventKind kind) {
  switch (kind) {
    case spool::EventKind::kScope:
    case spool::EventKind::kRecord:
    case spool::EventKind::kRecordAt:
    case spool::EventKind::kStepBegin:
    case spool::EventKind::kStepEnd:
      return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<RingReader> RingReader::Open(int directory, std::uint32_t number) {
  const std::string name = absl::StrCat(spool::kRingFilePrefix, number);
  RingReader ring;
  STEPWELL_ASSIGN_OR_RETURN(ring.file_, OpenAt(directory, name, O_RDWR | O_NONBLOCK));
  struct stat status {};
  if (fstat(ring.file_.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no regular file"));
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::string header,
                            ReadAt(ring.file_.get(), 0, sizeof(spool::RingHeader)));
  if (header.size() != sizeof(spool::RingHeader) ||
      std::memcmp(header.data(), spool::kRingMagic, sizeof(spool::kRingMagic)) != 0 ||
      STEPWELL_RING_FIELD(std::uint32_t, header, format_version) != spool::kFormatVersion) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no ring of format 1"));
  }
  ring.number_ = number;
  ring.capacity_ = STEPWELL_RING_FIELD(std::uint32_t, header, capacity);
  ring.thread_ = STEPWELL_RING_FIELD(std::uint32_t, header, thread);
  ring.worker_ = STEPWELL_RING_FIELD(std::uint32_t, header, worker);
  const std::uint32_t capacity = ring.capacity_;
  if (capacity == 0 || (capacity & (capacity - 1)) != 0 ||
      capacity > spool::kRingBytesMax / sizeof(spool::Event) ||
      static_cast<std::size_t>(status.st_size) < spool::RingFileBytes(capacity)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": capacity ", capacity, " does not fit the file"));
  }
  return ring;
}

absl::StatusOr<std::uint64_t> RingReader::ReadU64(std::size_t offset) const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string bytes, ReadAt(file_.get(), offset, 8));
  if (bytes.size() != 8) return absl::DataLossError("ring: cut short");
  return HeaderField<std::uint64_t>(bytes, 0);
}

absl::StatusOr<RingSnapshot> RingReader::ReadSnapshot() const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string before,
                            ReadAt(file_.get(), 0, sizeof(spool::RingHeader)));
  if (before.size() != sizeof(spool::RingHeader)) return absl::DataLossError("ring: cut short");
  RingSnapshot now;
  now.state = STEPWELL_RING_FIELD(std::uint32_t, before, state);
  now.next_ring = STEPWELL_RING_FIELD(std::uint32_t, before, next_ring);
  now.tail = STEPWELL_RING_FIELD(std::uint64_t, before, tail);
  now.dropped = STEPWELL_RING_FIELD(std::uint64_t, before, dropped);
  now.dropped_first_ns = STEPWELL_RING_FIELD(std::uint64_t, before, dropped_first_ns);
  now.dropped_last_ns = STEPWELL_RING_FIELD(std::uint64_t, before, dropped_last_ns);
  STEPWELL_ASSIGN_OR_RETURN(now.head, ReadU64(offsetof(spool::RingHeader, head)));
  return now;
}

absl::StatusOr<RingReader::Events> RingReader::ReadEvents(std::uint64_t from,
                                                          std::uint64_t to) const {
  STEPWELL_CHECK(from <= to);
  // The copy of a number by the kernel need not be atomic: a head that was torn while it grew
  // would make events out of slots that hold none. It never shrinks, so a second look settles it.
  STEPWELL_ASSIGN_OR_RETURN(const std::uint64_t head, ReadU64(offsetof(spool::RingHeader, head)));
  Events read;
  const std::uint64_t end = std::max(from, std::min({to, head, from + capacity_}));
  read.events.reserve(end - from);
  for (std::uint64_t at = from; at < end;) {
    const std::uint64_t lap_end = (at | (capacity_ - 1)) + 1;
    const std::uint64_t stretch_end = std::min(end, lap_end);
    const std::size_t bytes = (stretch_end - at) * sizeof(spool::Event);
    STEPWELL_ASSIGN_OR_RETURN(const std::string slots,
                              ReadAt(file_.get(), spool::EventOffset(capacity_, at), bytes));
    if (slots.size() != bytes) return absl::DataLossError("ring: cut short");
    for (std::size_t offset = 0; offset < bytes; offset += sizeof(spool::Event), ++at) {
      spool::Event event;
      std::memcpy(&event, slots.data() + offset, sizeof(event));
      if (event.stamp != static_cast<std::uint32_t>(at + 1) || !IsKind(event.kind)) {
        event.kind = kDamagedEvent;
        ++read.damaged_count;
      }
      read.events.push_back(event);
    }
  }
  return read;
}

absl::Status RingReader::StoreTail(std::uint64_t tail) const {
  return WriteAt(file_.get(), offsetof(spool::RingHeader, tail),
                 {reinterpret_cast<const char*>(&tail), sizeof(tail)});
}

}  // namespace stepwell::agent
