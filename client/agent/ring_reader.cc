#include "client/agent/ring_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

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
    case spool::EventKind::kInstant:
      return true;
  }
  return false;
}

bool IsDamaged(const spool::Event& event) { return event.kind == kDamagedEvent; }

// Those that are not what position `from` and the following ones should hold.
std::uint64_t MarkDamaged(std::uint64_t from, std::span<spool::Event> events) {
  std::uint64_t count = 0;
  for (spool::Event& event : events) {
    if (event.stamp == static_cast<std::uint32_t>(++from) && IsKind(event.kind)) continue;
    event.kind = kDamagedEvent;
    ++count;
  }
  return count;
}

}  // namespace

absl::StatusOr<RingReader> RingReader::Open(int directory, std::uint32_t number) {
  const std::string name = absl::StrCat(spool::kRingFilePrefix, number);
  RingReader ring;
  STEPWELL_ASSIGN_OR_RETURN(ring.file_, OpenAt(directory, name, O_RDWR | O_NOATIME));
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

absl::StatusOr<RingSnapshot> RingReader::ReadSnapshot() const {
  STEPWELL_ASSIGN_OR_RETURN(const RingSnapshot now, CopySnapshot());
  // The copy takes its words in no promised order: where nothing is added any more, a second one is
  // whole.
  if (now.state == spool::kRingLive) return now;
  return CopySnapshot();
}

absl::StatusOr<RingSnapshot> RingReader::CopySnapshot() const {
  std::array<char, sizeof(spool::RingHeader)> bytes;
  STEPWELL_ASSIGN_OR_RETURN(
      const std::size_t got,
      ReadInto(file_.get(), 0, std::as_writable_bytes(std::span<char>(bytes))));
  if (got != bytes.size()) return absl::DataLossError("ring: cut short");
  const std::string_view header(bytes.data(), bytes.size());
  RingSnapshot now;
  now.state = STEPWELL_RING_FIELD(std::uint32_t, header, state);
  now.next_ring = STEPWELL_RING_FIELD(std::uint32_t, header, next_ring);
  now.head = STEPWELL_RING_FIELD(std::uint64_t, header, head);
  now.tail = STEPWELL_RING_FIELD(std::uint64_t, header, tail);
  now.dropped = STEPWELL_RING_FIELD(std::uint64_t, header, dropped);
  now.dropped_first_ns = STEPWELL_RING_FIELD(std::uint64_t, header, dropped_first_ns);
  now.dropped_last_ns = STEPWELL_RING_FIELD(std::uint64_t, header, dropped_last_ns);
  now.thread_id = STEPWELL_RING_FIELD(std::uint32_t, header, thread_id);
  return now;
}

absl::StatusOr<RingReader::Events> RingReader::ReadEvents(std::uint64_t from,
                                                          std::uint64_t to) const {
  STEPWELL_CHECK(from <= to);
  Events read;
  read.events.resize(std::min<std::uint64_t>(to - from, capacity_));
  STEPWELL_RETURN_IF_ERROR(CopyEvents(from, read.events));
  read.damaged_count = MarkDamaged(from, read.events);
  if (read.damaged_count == 0) return read;
  // The copy of a number by the kernel need not be atomic: a head that was torn while it grew makes
  // events out of slots that hold none yet. It never shrinks, so a second look settles it.
  STEPWELL_ASSIGN_OR_RETURN(const RingSnapshot now, CopySnapshot());
  if (now.head < from + read.events.size()) {
    read.events.resize(std::max(now.head, from) - from);
    read.damaged_count = std::count_if(read.events.begin(), read.events.end(), IsDamaged);
  }
  return read;
}

absl::Status RingReader::CopyEvents(std::uint64_t from, std::span<spool::Event> events) const {
  while (!events.empty()) {
    const std::uint64_t lap_end = (from | (capacity_ - 1)) + 1;
    const std::span<spool::Event> stretch =
        events.first(std::min<std::uint64_t>(events.size(), lap_end - from));
    STEPWELL_ASSIGN_OR_RETURN(const std::size_t got,
                              ReadInto(file_.get(), spool::EventOffset(capacity_, from),
                                       std::as_writable_bytes(stretch)));
    if (got != stretch.size_bytes()) return absl::DataLossError("ring: cut short");
    from += stretch.size();
    events = events.subspan(stretch.size());
  }
  return absl::OkStatus();
}

absl::Status RingReader::StoreTail(std::uint64_t tail) const {
  return WriteAt(file_.get(), offsetof(spool::RingHeader, tail),
                 {reinterpret_cast<const char*>(&tail), sizeof(tail)});
}

}  // namespace stepwell::agent
