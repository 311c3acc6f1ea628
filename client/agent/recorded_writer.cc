#include "client/agent/recorded_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/clock_anchor.h"

namespace stepwell::agent {
namespace {

// Events copied at once; a sink that fills up stops the drain within so many.
constexpr std::uint64_t kEventsPerRead = 512;
// So many are opened by name; where more are missing, the directory tells which exist. A process of
// short threads makes millions of rings in its life, and a forged count claims billions.
constexpr std::uint32_t kRingsProbed = 32;
// Told with the next frame; so many are worth a record of their own.
constexpr std::size_t kRingsGoneMax = 4096;

template <typename T>
T Field(std::string_view header, std::size_t offset) {
  T value;
  std::memcpy(&value, header.data() + offset, sizeof(value));
  return value;
}

// Whether a process holds it, and which, as far as the agent sees it. F_GETLK sees the lock of a
// process in any PID namespace, and no forked child inherits it.
bool IsLocked(int fd, pid_t& holder) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = 0;
  lock.l_len = 1;
  const bool is_locked = fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  holder = is_locked ? std::max<pid_t>(lock.l_pid, 0) : 0;
  return is_locked;
}

// Numbers of the ring files that exist, from `first` to before `end`, in order.
absl::StatusOr<std::vector<std::uint32_t>> ListRings(int directory, std::uint32_t first,
                                                     std::uint32_t end) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(directory));
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : names) {
    absl::string_view digits = name;
    std::uint32_t number = 0;
    if (!absl::ConsumePrefix(&digits, spool::kRingFilePrefix) ||
        !absl::SimpleAtoi(digits, &number)) {
      continue;
    }
    // The one way the recorder writes it.
    if (number >= first && number < end && absl::StrCat(number) == digits) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RecordedWriter>> RecordedWriter::Open(FileDescriptor directory,
                                                                     Checkpoint checkpoint) {
  std::unique_ptr<RecordedWriter> writer(new RecordedWriter(std::move(directory)));
  const int at = writer->directory_.get();
  STEPWELL_ASSIGN_OR_RETURN(writer->lock_, OpenAt(at, spool::kLockFile, O_RDONLY | O_NONBLOCK));
  STEPWELL_ASSIGN_OR_RETURN(writer->header_, OpenAt(at, spool::kHeaderFile, O_RDWR | O_NONBLOCK));
  STEPWELL_ASSIGN_OR_RETURN(writer->names_file_,
                            OpenAt(at, spool::kNamesFile, O_RDONLY | O_NONBLOCK));
  STEPWELL_ASSIGN_OR_RETURN(const std::string header,
                            ReadAt(writer->header_.get(), 0, sizeof(spool::WriterHeader)));
  if (header.size() != sizeof(spool::WriterHeader) ||
      std::memcmp(header.data(), spool::kHeaderMagic, sizeof(spool::kHeaderMagic)) != 0 ||
      Field<std::uint32_t>(header, offsetof(spool::WriterHeader, format_version)) !=
          spool::kFormatVersion) {
    return absl::InvalidArgumentError("header: no writer of format 1");
  }
  writer->no_ring_seen_ = checkpoint.no_ring_told;
  writer->no_name_seen_ = checkpoint.no_name_told;
  writer->recovered_ = std::move(checkpoint);
  return writer;
}

absl::StatusOr<WriterStatus> RecordedWriter::ReadStatus() {
  WriterStatus status;
  status.alive = IsLocked(lock_.get(), status.pid);
  // State first, by a read of its own: after kWriterClosed the rest is final.
  STEPWELL_ASSIGN_OR_RETURN(
      const std::string state,
      ReadAt(header_.get(), offsetof(spool::WriterHeader, state), sizeof(std::uint32_t)));
  STEPWELL_ASSIGN_OR_RETURN(const std::string header,
                            ReadAt(header_.get(), 0, sizeof(spool::WriterHeader)));
  if (state.size() != sizeof(std::uint32_t) || header.size() != sizeof(spool::WriterHeader)) {
    return absl::DataLossError("header: cut short");
  }
  status.closed = Field<std::uint32_t>(state, 0) == spool::kWriterClosed;
  status.ring_count = Field<std::uint32_t>(header, offsetof(spool::WriterHeader, ring_count));
  status.last_step = Field<std::uint64_t>(header, offsetof(spool::WriterHeader, last_step));
  return status;
}

absl::Status RecordedWriter::Drain(const WriterStatus& status, Ending ending,
                                   ThreadSampleSink& sink) {
  FindRings(status.ring_count);
  drained_ = rings_found_ >= status.ring_count;
  for (auto& [number, thread] : threads_) {
    if (sink.full()) drained_ = false;
    if (thread.ended || sink.full()) continue;
    sink.EnterThread(number, thread.worker);
    STEPWELL_RETURN_IF_ERROR(DrainThread(thread, ending, sink));
  }
  STEPWELL_ASSIGN_OR_RETURN(const std::string header,
                            ReadAt(header_.get(), 0, sizeof(spool::WriterHeader)));
  if (header.size() != sizeof(spool::WriterHeader)) return absl::DataLossError("header: cut short");
  const auto tell = [&](EventLoss::Cause cause, std::uint64_t now, std::uint64_t& seen) {
    if (now > seen) sink.OnLoss({cause, now - seen, 0, 0});
    seen = std::max(seen, now);
  };
  const auto count = [&](std::size_t offset) { return Field<std::uint64_t>(header, offset); };
  // What a process that died held itself went with it.
  const std::uint64_t died_with = ending == Ending::kFinal && !status.closed
                                      ? count(offsetof(spool::WriterHeader, early_count))
                                      : 0;
  tell(EventLoss::Cause::kNoRing, count(offsetof(spool::WriterHeader, dropped_no_ring)) + died_with,
       no_ring_seen_);
  tell(EventLoss::Cause::kNoName, count(offsetof(spool::WriterHeader, dropped_no_name)),
       no_name_seen_);
  return absl::OkStatus();
}

// A number without a file has been unlinked: all of it was safe.
void RecordedWriter::FindRings(std::uint32_t ring_count) {
  if (ring_count <= rings_found_) return;
  std::vector<std::uint32_t> numbers;
  if (ring_count - rings_found_ > kRingsProbed) {
    absl::StatusOr<std::vector<std::uint32_t>> listed =
        ListRings(directory_.get(), rings_found_, ring_count);
    // Out of descriptors or memory: found again by the next drain, their events are still there.
    if (!listed.ok()) return;
    numbers = *std::move(listed);
  } else {
    for (std::uint32_t number = rings_found_; number < ring_count; ++number) {
      numbers.push_back(number);
    }
  }
  for (const std::uint32_t number : numbers) {
    absl::StatusOr<RingReader> reader = RingReader::Open(directory_.get(), number);
    if (absl::IsResourceExhausted(reader.status())) {
      rings_found_ = number;
      return;
    }
    if (reader.ok()) {
      AddRing(*std::move(reader));
    } else if (!absl::IsNotFound(reader.status())) {
      log::Warning("ring_refused", {{"why", std::string(reader.status().message())}});
    }
  }
  rings_found_ = ring_count;
}

void RecordedWriter::AddRing(RingReader reader) {
  const std::uint32_t number = reader.thread();
  const std::uint32_t ring_number = reader.number();
  Thread& thread = threads_[number];
  thread.worker = reader.worker();
  thread.ended = false;
  Ring ring{.reader = std::move(reader)};
  if (const absl::StatusOr<RingSnapshot> now = ring.reader.ReadSnapshot(); now.ok()) {
    ring.read = now->tail;
  }
  if (const auto mark = recovered_.rings.find(ring_number); mark != recovered_.rings.end()) {
    // An agent that died between its frame and the tail: what the frame holds is freed now.
    if (mark->second.tail > ring.read) {
      ring.read = mark->second.tail;
      ring.reader.StoreTail(ring.read).IgnoreError();
    }
    ring.dropped_told = mark->second.dropped_told;
  }
  ring.safe = ring.stored = ring.read;
  if (const auto state = recovered_.thread_states.find(number);
      state != recovered_.thread_states.end() && thread.state.empty()) {
    if (thread.aggregator.Restore(state->second)) thread.state = state->second;
  }
  thread.rings.push_back(std::move(ring));
}

absl::Status RecordedWriter::ReadNames() {
  STEPWELL_ASSIGN_OR_RETURN(
      const std::string valid,
      ReadAt(header_.get(), offsetof(spool::WriterHeader, names_bytes), sizeof(std::uint64_t)));
  if (valid.size() != sizeof(std::uint64_t)) return absl::DataLossError("header: cut short");
  const auto bytes = std::min<std::uint64_t>(Field<std::uint64_t>(valid, 0), spool::kNamesBytesMax);
  if (bytes <= names_.consumed_bytes() || names_.damaged()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(
      const std::string records,
      ReadAt(names_file_.get(), names_.consumed_bytes(), bytes - names_.consumed_bytes()));
  names_.Extend(records);
  return absl::OkStatus();
}

absl::Status RecordedWriter::DrainThread(Thread& thread, Ending ending, ThreadSampleSink& sink) {
  for (std::size_t i = 0; i < thread.rings.size(); ++i) {
    Ring& ring = thread.rings[i];
    if (ring.over && ring.safe == ring.read && i + 1 < thread.rings.size()) continue;
    STEPWELL_ASSIGN_OR_RETURN(const RingSnapshot now, ring.reader.ReadSnapshot());
    STEPWELL_RETURN_IF_ERROR(ReadNames());
    while (ring.read < now.head && !sink.full()) {
      const std::uint64_t before = ring.read;
      const std::uint64_t to = std::min(now.head, ring.read + kEventsPerRead);
      STEPWELL_ASSIGN_OR_RETURN(const RingReader::Events read,
                                ring.reader.ReadEvents(ring.read, to));
      AddEvents(thread, ring, read, sink);
      if (ring.read == before) break;
    }
    TellDrops(ring, now, sink);
    if (ring.read < now.head) {
      drained_ = false;
      return absl::OkStatus();
    }
    ring.over = now.state == spool::kRingSucceeded || now.state == spool::kRingEnded;
    const bool is_last = i + 1 == thread.rings.size();
    // A successor that is not counted yet is found by the next drain.
    if (now.state == spool::kRingSucceeded && is_last && ending == Ending::kMoreToCome) break;
    if (is_last && (now.state == spool::kRingEnded || ending == Ending::kFinal)) {
      thread.aggregator.End(sink);
      MarkSafe(thread);
      thread.ended = true;
    }
    if (!ring.over) break;
  }
  return absl::OkStatus();
}

void RecordedWriter::AddEvents(Thread& thread, Ring& ring, const RingReader::Events& read,
                               ThreadSampleSink& sink) {
  std::uint64_t damaged_count = 0;
  for (const spool::Event& event : read.events) {
    ++ring.read;
    if (event.kind == kDamagedEvent || !Known(event)) {
      ++damaged_count;
    } else {
      thread.aggregator.Add(event, sink);
    }
    if (thread.aggregator.decided()) MarkSafe(thread);
  }
  if (damaged_count > 0) sink.OnLoss({EventLoss::Cause::kDamaged, damaged_count, 0, 0});
  if (thread.aggregator.kept_count() > ring.reader.capacity() / 2) {
    std::string state = thread.aggregator.FoldKept(sink);
    MarkSafe(thread);
    thread.state = std::move(state);
    thread.state_moved = true;
  }
}

bool RecordedWriter::Known(const spool::Event& event) const {
  if (event.kind == spool::EventKind::kStepBegin || event.kind == spool::EventKind::kStepEnd) {
    return true;
  }
  const NameEntry* entry = names_.Find(event.name);
  const auto kind =
      event.kind == spool::EventKind::kScope ? spool::NameKind::kScope : spool::NameKind::kSeries;
  return entry != nullptr && entry->kind == kind;
}

// All events read so far are in the sink, or in the state that is set after this.
void RecordedWriter::MarkSafe(Thread& thread) {
  for (Ring& ring : thread.rings) ring.safe = ring.read;
  if (thread.state.empty()) return;
  thread.state.clear();
  thread.state_moved = true;
}

void RecordedWriter::TellDrops(Ring& ring, const RingSnapshot& now, ThreadSampleSink& sink) {
  if (now.dropped <= ring.dropped_told) return;
  EventLoss loss{EventLoss::Cause::kRingFull, now.dropped - ring.dropped_told, now.dropped_first_ns,
                 now.dropped_last_ns};
  // The first time is that of all drops; what was told already ended at the last one told.
  if (ring.dropped_last_ns != 0) loss.first_ns = std::min(ring.dropped_last_ns, loss.last_ns);
  sink.OnLoss(loss);
  ring.dropped_told = now.dropped;
  ring.dropped_last_ns = now.dropped_last_ns;
  ring.dropped_moved = true;
}

RecordedWriter::Progress RecordedWriter::TakeProgress() {
  Progress progress;
  progress.checkpoint.no_ring_told = no_ring_seen_;
  progress.checkpoint.no_name_told = no_name_seen_;
  for (auto& [number, thread] : threads_) {
    if (thread.state_moved) {
      progress.checkpoint.thread_states[number] = thread.state;
      progress.moved = progress.urgent = true;
      thread.state_moved = false;
    }
    for (Ring& ring : thread.rings) {
      if (ring.safe == ring.stored && !ring.dropped_moved) continue;
      progress.checkpoint.rings[ring.reader.number()] = {ring.safe, ring.dropped_told};
      progress.moved = true;
      progress.urgent |= ring.safe - ring.stored > ring.reader.capacity() / 4;
      ring.dropped_moved = false;
    }
  }
  for (const std::uint32_t ring : gone_) {
    progress.checkpoint.rings[ring] = {RingMark::kGone, 0};
  }
  progress.urgent |= gone_.size() > kRingsGoneMax;
  return progress;
}

void RecordedWriter::StoreTails(const Checkpoint& checkpoint) {
  std::erase_if(gone_, [&](std::uint32_t ring) {
    const auto mark = checkpoint.rings.find(ring);
    return mark != checkpoint.rings.end() && mark->second.tail == RingMark::kGone;
  });
  for (auto& [number, thread] : threads_) {
    for (Ring& ring : thread.rings) {
      const auto mark = checkpoint.rings.find(ring.reader.number());
      if (mark == checkpoint.rings.end()) continue;
      if (ring.reader.StoreTail(mark->second.tail).ok()) ring.stored = mark->second.tail;
    }
    while (!thread.rings.empty()) {
      const Ring& oldest = thread.rings.front();
      if (!oldest.over || oldest.stored != oldest.read) break;
      // The back stays until its thread has ended: its successor is found through the chain.
      if (thread.rings.size() == 1 && !thread.ended) break;
      unlinkat(directory_.get(),
               absl::StrCat(spool::kRingFilePrefix, oldest.reader.number()).c_str(), 0);
      gone_.push_back(oldest.reader.number());
      thread.rings.pop_front();
    }
  }
  std::erase_if(threads_,
                [](const auto& entry) { return entry.second.ended && entry.second.rings.empty(); });
}

void RecordedWriter::StoreAgentState(spool::AgentState state) {
  const std::uint32_t value = state;
  const std::uint64_t now_ns = MonotonicNs();
  WriteAt(header_.get(), offsetof(spool::WriterHeader, agent_seen_ns),
          {reinterpret_cast<const char*>(&now_ns), sizeof(now_ns)})
      .IgnoreError();
  WriteAt(header_.get(), offsetof(spool::WriterHeader, agent_state),
          {reinterpret_cast<const char*>(&value), sizeof(value)})
      .IgnoreError();
}

void RecordedWriter::StoreControl(std::uint32_t control) {
  WriteAt(header_.get(), offsetof(spool::WriterHeader, control),
          {reinterpret_cast<const char*>(&control), sizeof(control)})
      .IgnoreError();
}

}  // namespace stepwell::agent
