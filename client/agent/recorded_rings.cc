#include "client/agent/recorded_rings.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/clock_anchor.h"
#include "client/agent/header_field.h"

namespace stepwell::agent {
namespace {

// Events copied at once; a sink that fills up stops the drain within so many.
constexpr std::uint64_t kEventsPerRead = 512;
// So many are opened by name; where more are missing, the directory tells which exist. A process of
// short threads makes millions of rings in its life, and a forged count claims billions.
constexpr std::uint32_t kRingsProbed = 32;
// Told with the next frame; so many are worth a record of their own.
constexpr std::size_t kRingsGoneMax = 4096;

// Adds the numbers of the ring files in `directory`, from `first` to before `end`.
absl::Status AddRingNumbers(int directory, std::uint32_t first, std::uint32_t end,
                            std::vector<std::uint32_t>& numbers) {
  STEPWELL_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListNames(directory));
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
  return absl::OkStatus();
}

std::uint64_t LastSign(std::string_view header, bool closed) {
  const auto field = [&](std::size_t offset) { return HeaderField<std::uint64_t>(header, offset); };
  const std::uint64_t closed_ns = closed ? field(offsetof(spool::WriterHeader, closed_ns)) : 0;
  return std::max({field(offsetof(spool::WriterHeader, opened_ns)),
                   field(offsetof(spool::WriterHeader, last_step_ns)), closed_ns});
}

std::uint64_t NextNumber() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

RecordedRings::RecordedRings(FileDescriptor directory, RingFolder folder, std::uint32_t worker,
                             RingBudget& budget)
    : directory_(std::move(directory)),
      folder_(std::move(folder)),
      worker_(worker),
      number_(NextNumber()),
      budget_(budget) {}

absl::StatusOr<std::unique_ptr<RecordedRings>> RecordedRings::Open(FileDescriptor directory,
                                                                   RingFolder folder,
                                                                   std::uint32_t worker,
                                                                   RingBudget& budget) {
  std::unique_ptr<RecordedRings> rings(
      new RecordedRings(std::move(directory), std::move(folder), worker, budget));
  const int at = rings->directory();
  STEPWELL_ASSIGN_OR_RETURN(rings->header_, OpenAt(at, spool::kHeaderFile, O_RDWR | O_NOATIME));
  STEPWELL_ASSIGN_OR_RETURN(rings->names_file_,
                            OpenAt(at, spool::kNamesFile, O_RDONLY | O_NOATIME));
  STEPWELL_ASSIGN_OR_RETURN(const std::string header,
                            ReadAt(rings->header_.get(), 0, sizeof(spool::WriterHeader)));
  if (header.size() != sizeof(spool::WriterHeader) ||
      std::memcmp(header.data(), spool::kHeaderMagic, sizeof(spool::kHeaderMagic)) != 0 ||
      HeaderField<std::uint32_t>(header, offsetof(spool::WriterHeader, format_version)) !=
          spool::kFormatVersion) {
    return absl::InvalidArgumentError("header: no writer of format 1");
  }
  rings->opened_ns_ = HeaderField<std::uint64_t>(header, offsetof(spool::WriterHeader, opened_ns));
  return rings;
}

void RecordedRings::Recover(RingProgress progress) {
  no_ring_seen_ = progress.no_ring_told;
  no_name_seen_ = progress.no_name_told;
  ended_ = progress.ended;
  recovered_ = std::move(progress);
}

absl::StatusOr<RecordedHeader> RecordedRings::ReadHeader() const {
  STEPWELL_ASSIGN_OR_RETURN(const RecordedHeader header, CopyHeader());
  // The copy takes its words in no promised order: what was closed before it began is whole.
  if (!header.closed) return header;
  return CopyHeader();
}

absl::StatusOr<RecordedHeader> RecordedRings::CopyHeader() const {
  std::array<char, sizeof(spool::WriterHeader)> bytes;
  STEPWELL_ASSIGN_OR_RETURN(
      const std::size_t got,
      ReadInto(header_.get(), 0, std::as_writable_bytes(std::span<char>(bytes))));
  if (got != bytes.size()) return absl::DataLossError("header: cut short");
  const std::string_view copy(bytes.data(), bytes.size());
  const auto number = [&copy](std::size_t offset) {
    return HeaderField<std::uint64_t>(copy, offset);
  };
  RecordedHeader header;
  header.closed = HeaderField<std::uint32_t>(copy, offsetof(spool::WriterHeader, state)) ==
                  spool::kWriterClosed;
  header.ring_count = HeaderField<std::uint32_t>(copy, offsetof(spool::WriterHeader, ring_count));
  header.pid =
      static_cast<pid_t>(HeaderField<std::uint32_t>(copy, offsetof(spool::WriterHeader, pid)));
  header.last_step = number(offsetof(spool::WriterHeader, last_step));
  header.last_sign_ns = LastSign(copy, header.closed);
  header.dropped_no_ring = number(offsetof(spool::WriterHeader, dropped_no_ring));
  header.dropped_no_name = number(offsetof(spool::WriterHeader, dropped_no_name));
  header.early_count = number(offsetof(spool::WriterHeader, early_count));
  header.offers_capture =
      HeaderField<std::uint32_t>(copy, offsetof(spool::WriterHeader, capture_offered)) == 1;
  header.capture_answer = number(offsetof(spool::WriterHeader, capture_answer));
  return header;
}

bool RecordedRings::HasNews() const {
  const absl::StatusOr<RecordedHeader> header = CopyHeader();
  if (!drained_ || !header.ok() || *header != drained_header_) return true;
  const auto is_news = [](const Ring& ring) {
    // What is left of it waits for what its successor brings.
    if (ring.over) return false;
    const absl::StatusOr<RingSnapshot> now = ring.reader.ReadSnapshot();
    return !now.ok() || now->head != ring.read || now->state != ring.state ||
           now->dropped != ring.dropped_told;
  };
  return std::any_of(threads_.begin(), threads_.end(), [&](const auto& entry) {
    const Thread& thread = entry.second;
    return !thread.ended && std::any_of(thread.rings.begin(), thread.rings.end(), is_news);
  });
}

absl::Status RecordedRings::Drain(const RecordedHeader& header, Ending ending,
                                  ThreadSampleSink& sink) {
  drained_header_ = header;
  FindRings(header.ring_count);
  drained_ = rings_found_ >= header.ring_count;
  for (auto& [number, thread] : threads_) {
    if (sink.full()) drained_ = false;
    if (thread.ended || sink.full()) continue;
    sink.EnterThread({number_, worker_, names_}, number);
    STEPWELL_RETURN_IF_ERROR(DrainThread(thread, ending, sink));
  }
  TellLosses(header, ending, sink);
  if (ending == Ending::kFinal && drained_ && !ended_) End(sink);
  return absl::OkStatus();
}

void RecordedRings::TellLosses(const RecordedHeader& header, Ending ending,
                               ThreadSampleSink& sink) {
  const auto tell = [&](EventLoss::Cause cause, std::uint64_t now, std::uint64_t& seen) {
    if (now > seen) sink.OnLoss({cause, now - seen, 0, 0});
    seen = std::max(seen, now);
  };
  // What a process that died held itself went with it.
  const bool has_died = ending == Ending::kFinal && !header.closed;
  const std::uint64_t died_with = has_died ? header.early_count : 0;
  tell(EventLoss::Cause::kNoRing, header.dropped_no_ring + died_with, no_ring_seen_);
  tell(EventLoss::Cause::kNoName, header.dropped_no_name, no_name_seen_);
}

void RecordedRings::End(ThreadSampleSink& sink) {
  ended_ = ended_moved_ = true;
  if (hidden_count_ == 0) return;
  log::Warning("rings_not_visible",
               {{"rings", hidden_count_},
                {"why", "they lie in a shared memory that this agent does not see"}});
  sink.OnLoss({EventLoss::Cause::kHidden, 0, 0, 0});
}

// A number without a file has been unlinked: all of it was safe. Or it lies where nobody here sees it.
void RecordedRings::FindRings(std::uint32_t ring_count) {
  if (ring_count <= rings_found_) return;
  std::vector<std::uint32_t> numbers;
  if (ring_count - rings_found_ > kRingsProbed) {
    absl::StatusOr<std::vector<std::uint32_t>> listed = ListRings(ring_count);
    // Out of descriptors or memory: found again by the next drain, their events are still there.
    if (!listed.ok()) return;
    numbers = *std::move(listed);
    if (folder_.hidden()) {
      hidden_count_ += ring_count - rings_found_ - static_cast<std::uint32_t>(numbers.size());
    }
  } else {
    for (std::uint32_t number = rings_found_; number < ring_count; ++number) {
      numbers.push_back(number);
    }
  }
  for (const std::uint32_t number : numbers) {
    if (OpenRing(number)) continue;
    rings_found_ = number;
    return;
  }
  rings_found_ = ring_count;
}

absl::StatusOr<std::vector<std::uint32_t>> RecordedRings::ListRings(std::uint32_t end) const {
  std::vector<std::uint32_t> numbers;
  STEPWELL_RETURN_IF_ERROR(AddRingNumbers(directory(), rings_found_, end, numbers));
  if (folder_.visible()) {
    STEPWELL_RETURN_IF_ERROR(AddRingNumbers(folder_.get(), rings_found_, end, numbers));
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

bool RecordedRings::OpenRing(std::uint32_t number) {
  RingSlot slot = budget_.Take();
  if (!slot.valid()) return false;
  int at = folder_.visible() ? folder_.get() : directory();
  absl::StatusOr<RingReader> reader = RingReader::Open(at, number);
  if (absl::IsNotFound(reader.status()) && at != directory()) {
    at = directory();
    reader = RingReader::Open(at, number);
  }
  if (absl::IsResourceExhausted(reader.status())) return false;
  if (reader.ok()) {
    AddRing(*std::move(reader), std::move(slot), at);
  } else if (!absl::IsNotFound(reader.status())) {
    LogRefused(reader.status());
  } else if (folder_.hidden()) {
    ++hidden_count_;
  }
  return true;
}

void RecordedRings::LogRefused(const absl::Status& why) {
  ++refused_count_;
  if (SteadyTime::Now() - refused_logged_ < absl::Minutes(1)) return;
  refused_logged_ = SteadyTime::Now();
  log::Warning("ring_refused",
               {{"rings", std::exchange(refused_count_, 0)}, {"why", std::string(why.message())}});
}

void RecordedRings::AddRing(RingReader reader, RingSlot slot, int directory) {
  const std::uint32_t number = reader.thread();
  const std::uint32_t ring_number = reader.number();
  Thread& thread = threads_[number];
  thread.ended = false;
  Ring ring{.reader = std::move(reader), .slot = std::move(slot), .directory = directory};
  if (const absl::StatusOr<RingSnapshot> now = ring.reader.ReadSnapshot(); now.ok()) {
    ring.read = now->tail;
  }
  if (const auto mark = recovered_.rings.find(ring_number); mark != recovered_.rings.end()) {
    // An agent that died between its frame and the tail: what the frame holds is freed now.
    if (mark->second.tail > ring.read) {
      ring.read = mark->second.tail;
      ring.reader.StoreTail(ring.read).IgnoreError();
    } else {
      // A tail follows its frame: where the spool knows less, it was set back or cut since.
      ring.gone_count = ring.read - mark->second.tail;
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

absl::Status RecordedRings::ReadNames() {
  STEPWELL_ASSIGN_OR_RETURN(
      const std::string valid,
      ReadAt(header_.get(), offsetof(spool::WriterHeader, names_bytes), sizeof(std::uint64_t)));
  if (valid.size() != sizeof(std::uint64_t)) return absl::DataLossError("header: cut short");
  const auto bytes =
      std::min<std::uint64_t>(HeaderField<std::uint64_t>(valid, 0), spool::kNamesBytesMax);
  if (bytes <= names_.consumed_bytes() || names_.damaged()) return absl::OkStatus();
  STEPWELL_ASSIGN_OR_RETURN(
      const std::string records,
      ReadAt(names_file_.get(), names_.consumed_bytes(), bytes - names_.consumed_bytes()));
  names_.Extend(records);
  return absl::OkStatus();
}

absl::Status RecordedRings::DrainThread(Thread& thread, Ending ending, ThreadSampleSink& sink) {
  for (std::size_t i = 0; i < thread.rings.size(); ++i) {
    Ring& ring = thread.rings[i];
    if (ring.over && ring.safe == ring.read && i + 1 < thread.rings.size()) continue;
    STEPWELL_ASSIGN_OR_RETURN(RingSnapshot now, ring.reader.ReadSnapshot());
    if (IsBeyondLap(ring, now)) {
      STEPWELL_ASSIGN_OR_RETURN(now, ring.reader.ReadSnapshot());
      if (IsBeyondLap(ring, now)) SkipToLastLap(ring, now, sink);
    }
    sink.OnThreadId(now.thread_id);
    TellGone(ring, sink);
    STEPWELL_RETURN_IF_ERROR(DrainRing(thread, ring, now, sink));
    TellDrops(ring, now, sink);
    ring.state = now.state;
    if (ring.read < now.head) {
      drained_ = false;
      return absl::OkStatus();
    }
    ring.over = now.state == spool::kRingSucceeded || now.state == spool::kRingEnded ||
                ending == Ending::kFinal;
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

bool RecordedRings::IsBeyondLap(const Ring& ring, const RingSnapshot& now) {
  return now.head > ring.read && now.head - ring.read > ring.reader.capacity();
}

// No recorder goes further ahead of its reader: the number is forged, and going there event by event
// would keep all others waiting for years.
void RecordedRings::SkipToLastLap(Ring& ring, const RingSnapshot& now, ThreadSampleSink& sink) {
  sink.OnLoss({EventLoss::Cause::kDamaged, 0, 0, 0});
  ring.read = now.head - ring.reader.capacity();
}

absl::Status RecordedRings::DrainRing(Thread& thread, Ring& ring, const RingSnapshot& now,
                                      ThreadSampleSink& sink) {
  while (ring.read < now.head && !sink.full()) {
    const std::uint64_t before = ring.read;
    const std::uint64_t to = ring.read + std::min(now.head - ring.read, kEventsPerRead);
    STEPWELL_ASSIGN_OR_RETURN(const RingReader::Events read, ring.reader.ReadEvents(ring.read, to));
    STEPWELL_RETURN_IF_ERROR(AddEvents(thread, ring, read, sink));
    if (ring.read == before) break;
  }
  return absl::OkStatus();
}

absl::Status RecordedRings::AddEvents(Thread& thread, Ring& ring, const RingReader::Events& read,
                                      ThreadSampleSink& sink) {
  std::uint64_t damaged_count = 0;
  // Names are written before the events that use them: one look suffices for all that was read.
  bool has_looked = false;
  for (const spool::Event& event : read.events) {
    if (event.kind != kDamagedEvent && !has_looked && !Known(event)) {
      STEPWELL_RETURN_IF_ERROR(ReadNames());
      has_looked = true;
    }
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
  return absl::OkStatus();
}

bool RecordedRings::Known(const spool::Event& event) const {
  if (event.kind == spool::EventKind::kStepBegin || event.kind == spool::EventKind::kStepEnd) {
    return true;
  }
  const NameEntry* entry = names_.Find(event.name);
  const bool is_of_scope =
      event.kind == spool::EventKind::kScope || event.kind == spool::EventKind::kInstant;
  const auto kind = is_of_scope ? spool::NameKind::kScope : spool::NameKind::kSeries;
  return entry != nullptr && entry->kind == kind;
}

// All events read so far are in the sink, or in the state that is set after this.
void RecordedRings::MarkSafe(Thread& thread) {
  for (Ring& ring : thread.rings) ring.safe = ring.read;
  if (thread.state.empty()) return;
  thread.state.clear();
  thread.state_moved = true;
}

void RecordedRings::TellDrops(Ring& ring, const RingSnapshot& now, ThreadSampleSink& sink) {
  if (now.dropped <= ring.dropped_told) return;
  EventLoss loss{EventLoss::Cause::kRingFull, now.dropped - ring.dropped_told, now.dropped_first_ns,
                 now.dropped_last_ns};
  // The first time is that of all drops; what was told already ended at the last one told.
  if (ring.dropped_last_ns != 0) loss.first_ns = std::min(ring.dropped_last_ns, loss.last_ns);
  sink.OnLoss(loss);
  ring.dropped_told = now.dropped;
  ring.dropped_last_ns = now.dropped_last_ns;
  ring.told_moved = true;
}

// More than a lap may well have gone; a forged tail tells as much as it likes of its own writer.
void RecordedRings::TellGone(Ring& ring, ThreadSampleSink& sink) {
  if (ring.gone_count == 0) return;
  sink.OnLoss({EventLoss::Cause::kFramesGone, std::exchange(ring.gone_count, 0), 0, 0});
  ring.told_moved = true;
}

RecordedRings::Moved RecordedRings::TakeProgress(RingProgress& progress) {
  Moved moved;
  progress.no_ring_told = no_ring_seen_;
  progress.no_name_told = no_name_seen_;
  progress.ended = ended_;
  moved.moved = ended_moved_;
  ended_moved_ = false;
  for (auto& [number, thread] : threads_) {
    if (thread.state_moved) {
      progress.thread_states[number] = thread.state;
      moved.moved = moved.urgent = true;
      thread.state_moved = false;
    }
    for (Ring& ring : thread.rings) {
      if (ring.safe == ring.stored && !ring.told_moved) continue;
      progress.rings[ring.reader.number()] = {ring.safe, ring.dropped_told};
      moved.moved = true;
      moved.urgent |= ring.safe - ring.stored > ring.reader.capacity() / 4;
      ring.told_moved = false;
    }
  }
  for (const std::uint32_t ring : gone_) progress.rings[ring] = {RingMark::kGone, 0};
  moved.urgent |= gone_.size() > kRingsGoneMax;
  return moved;
}

void RecordedRings::StoreTails(const RingProgress& written) {
  std::erase_if(gone_, [&](std::uint32_t ring) {
    const auto mark = written.rings.find(ring);
    return mark != written.rings.end() && mark->second.tail == RingMark::kGone;
  });
  for (auto& [number, thread] : threads_) {
    for (Ring& ring : thread.rings) {
      const auto mark = written.rings.find(ring.reader.number());
      if (mark == written.rings.end()) continue;
      if (ring.reader.StoreTail(mark->second.tail).ok()) ring.stored = mark->second.tail;
    }
  }
  DropFinished();
}

void RecordedRings::DropFinished() {
  for (auto& [number, thread] : threads_) {
    while (!thread.rings.empty()) {
      const Ring& oldest = thread.rings.front();
      if (!oldest.over || oldest.stored != oldest.read) break;
      // The back stays until its thread has ended: its successor is found through the chain.
      if (thread.rings.size() == 1 && !thread.ended) break;
      unlinkat(oldest.directory,
               absl::StrCat(spool::kRingFilePrefix, oldest.reader.number()).c_str(), 0);
      gone_.push_back(oldest.reader.number());
      thread.rings.pop_front();
    }
  }
  std::erase_if(threads_,
                [](const auto& entry) { return entry.second.ended && entry.second.rings.empty(); });
}

void RecordedRings::StoreAgentState(spool::AgentState state) {
  if (state == state_told_) return;
  const std::uint32_t word = state;
  if (StoreAt(header_, offsetof(spool::WriterHeader, agent_state), word).ok()) state_told_ = state;
}

absl::Status RecordedRings::StoreEnded(bool ended) {
  const std::uint32_t word = ended ? 1 : 0;
  return StoreAt(header_, offsetof(spool::WriterHeader, ended), word);
}

void RecordedRings::StoreControl(std::uint32_t control) {
  StoreAt(header_, offsetof(spool::WriterHeader, control), control).IgnoreError();
}

}  // namespace stepwell::agent
