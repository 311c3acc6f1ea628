#include "client/recorder/src/thread_recorder.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "client/recorder/src/monotonic.h"
#include "client/recorder/src/process_writer.h"

namespace stepwell::recorder {
namespace {

using spool::EventKind;

constexpr std::uint32_t kFirstCapacity = spool::kRingBytesFirst / sizeof(spool::Event);
constexpr std::uint32_t kCapacityMax = spool::kRingBytesMax / sizeof(spool::Event);
constexpr std::uint32_t kGrowth = 4;  // 256 KiB, 1 MiB, 4 MiB
static_assert(kFirstCapacity * kGrowth * kGrowth == kCapacityMax);

// In the number of the thread that a scope began on, which is never that great.
constexpr std::uint32_t kApart = 0x8000'0000;

static_assert(sizeof(ThreadRecorder) == alignof(ThreadRecorder));

}  // namespace

ThreadRecorder::ThreadRecorder(ProcessWriter& process, std::unique_ptr<Ring> ring,
                               std::uint32_t thread, std::uint32_t serial)
    : line_(process.gate_line()),
      generation_(process.generation()),
      serial_(serial),
      process_(process),
      thread_(thread),
      early_(process.early_count()),
      thread_id_(static_cast<std::uint32_t>(syscall(SYS_gettid))) {
  pthread_getname_np(pthread_self(), thread_name_, sizeof(thread_name_));
  if (ring != nullptr) {
    std::memcpy(ring->header().thread_name, thread_name_, sizeof(thread_name_));
    ring->header().thread_id = thread_id_;
  }
  producer_.Attach(ring.get());
  current_.store(ring.release(), std::memory_order_release);
}

ThreadRecorder::~ThreadRecorder() { (void)End(); }

inline std::uint32_t ThreadRecorder::FindPath(std::uint32_t parent, std::uint32_t scope) {
  if (const std::uint32_t known = paths_.Find(parent, scope)) [[likely]] {
    return known;
  }
  return AddPath(parent, scope);
}

[[gnu::hot]] void ThreadRecorder::BeginScope(stepwell_scope& scope, std::uint32_t name) {
  scope.path = depth_ < spool::kScopeDepthMax ? FindPath(path_, name) : spool::kNoName;
  if (scope.path == spool::kNoName) [[unlikely]] {
    return CountNoName();
  }
  scope.parent = path_;
  scope.step = step_;
  scope.thread = serial_;
  path_ = scope.path;
  ++depth_;
  scope.start_ns = NowNs();
}

[[gnu::cold, gnu::noinline]] void ThreadRecorder::CountNoName() {
  ++drops_;
  process_.CountNoName();
}

void ThreadRecorder::BeginScopeApart(stepwell_scope& scope, std::uint32_t name) {
  scope.path = FindPath(spool::kNoName, name);
  if (scope.path == spool::kNoName) [[unlikely]] {
    return CountNoName();
  }
  scope.parent = spool::kNoName;
  scope.step = step_;
  scope.thread = serial_ | kApart;
  scope.start_ns = NowNs();
}

[[gnu::cold, gnu::noinline]] bool ThreadRecorder::IsOfThisWriter(const stepwell_scope& scope,
                                                                 spool::Event& event) const {
  // Begun under another writer, the parent's of a fork for one: its path means nothing here.
  if ((scope.thread & kApart) == 0) return scope.thread >= process_.serial_first();
  const std::uint32_t serial = scope.thread & ~kApart;
  if (serial == serial_ && scope.step == step_) event.flags = InStepFlag();
  return serial >= process_.serial_first();
}

[[gnu::hot]] std::uint64_t ThreadRecorder::EndScope(const stepwell_scope& scope) {
  const std::uint64_t now_ns = NowNs();
  spool::Event event{.time = scope.start_ns,
                     .value = now_ns - scope.start_ns,
                     .name = scope.path,
                     .batch = spool::kNoBatch,
                     .kind = EventKind::kScope,
                     .flags = 0,
                     .depth = 0,
                     .stamp = 0};
  if (scope.thread == serial_ && scope.step == step_) [[likely]] {
    event.flags = InStepFlag();
    if (path_ == scope.path && depth_ > 0) [[likely]] {
      event.depth = --depth_;
      path_ = scope.parent;
    } else {
      // Others began within it and are open still, as tasks' are that take turns: who lies in whom is
      // not known, and nesting begins anew. Else each of them would lie in all before it.
      path_ = spool::kNoName;
      depth_ = 0;
    }
  } else if (!IsOfThisWriter(scope, event)) {
    return 0;
  }
  Add(event, now_ns);
  return event.value;
}

[[gnu::hot]] void ThreadRecorder::Record(std::uint32_t series, double value) {
  std::uint32_t name = process_.SeriesName(series);
  if (name == spool::kNoName) [[unlikely]] {
    name = NameAtFirstUse(series);
    if (name == spool::kNoName) return;
  }
  const std::uint64_t now_ns = NowNs();
  Add({.time = now_ns,
       .value = std::bit_cast<std::uint64_t>(value),
       .name = name,
       .batch = is_step_open_ ? spool::kBatchOfStep : spool::kNoBatch,
       .kind = EventKind::kRecord,
       .flags = InStepFlag(),
       .depth = depth_,
       .stamp = 0},
      now_ns);
}

void ThreadRecorder::RecordAt(std::uint32_t series, std::int32_t batch, std::int64_t time_us,
                              double value) {
  std::uint32_t name = process_.SeriesName(series);
  if (name == spool::kNoName) [[unlikely]] {
    name = NameAtFirstUse(series);
    if (name == spool::kNoName) return;
  }
  Add({.time = static_cast<std::uint64_t>(time_us),
       .value = std::bit_cast<std::uint64_t>(value),
       .name = name,
       .batch = std::max(batch, spool::kNoBatch),
       .kind = EventKind::kRecordAt,
       .flags = 0,
       .depth = depth_,
       .stamp = 0},
      NowNs());
}

void ThreadRecorder::AddInstant(std::uint32_t name) {
  const std::uint32_t path = FindPath(spool::kNoName, name);
  if (path == spool::kNoName) [[unlikely]] {
    ++drops_;
    return process_.CountNoName();
  }
  const std::uint64_t now_ns = NowNs();
  Add({.time = now_ns,
       .value = 0,
       .name = path,
       .batch = spool::kNoBatch,
       .kind = EventKind::kInstant,
       .flags = InStepFlag(),
       .depth = depth_,
       .stamp = 0},
      now_ns);
}

void ThreadRecorder::BeginStep() {
  const std::uint64_t now_ns = NowNs();
  OpenStep(now_ns);
  if (is_on()) Add(StepBegin(), now_ns);
}

[[gnu::hot]] void ThreadRecorder::EndStep(std::int32_t batch) {
  const std::uint64_t now_ns = NowNs();
  const bool was_open = is_step_open_;
  // A step that recording was switched in has only a part of its scopes: it is not one.
  const bool is_whole = was_open && is_on() && step_pauses_ == process_.pause_count();
  if (was_open) {
    const std::int32_t taken = process_.EndStep(batch, now_ns, serial_);
    if (is_whole) Add(StepEnd(now_ns, taken), now_ns);
  } else {
    process_.SkipToBatch(batch);
  }
  process_.ObserveControl();
  OpenStep(now_ns);
  if (!is_whole && is_on()) [[unlikely]] {
    AddStepBegin(now_ns);
  }
}

[[gnu::cold, gnu::noinline]] void ThreadRecorder::AddStepBegin(std::uint64_t now_ns) {
  Add(StepBegin(), now_ns);
}

void ThreadRecorder::LeaveStep() {
  if (is_step_open_) {
    // Even while recording is off: events from before wait for it.
    const std::uint64_t now_ns = NowNs();
    OpenStep(now_ns);
    is_step_open_ = false;
    Add(StepBegin(), now_ns);
  }
  process_.ObserveControl();
}

void ThreadRecorder::OpenStep(std::uint64_t now_ns) {
  ++step_;
  path_ = spool::kNoName;
  depth_ = 0;
  is_step_open_ = true;
  step_start_ns_ = now_ns;
  step_pauses_ = process_.pause_count();
  step_drops_ = drops_;
}

spool::Event ThreadRecorder::StepBegin() const {
  return {.time = step_start_ns_,
          .value = 0,
          .name = spool::kNoName,
          .batch = spool::kNoBatch,
          .kind = EventKind::kStepBegin,
          .flags = 0,
          .depth = 0,
          .stamp = 0};
}

spool::Event ThreadRecorder::StepEnd(std::uint64_t now_ns, std::int32_t batch) const {
  return {.time = step_start_ns_,
          .value = now_ns - step_start_ns_,
          .name = spool::kNoName,
          .batch = batch,
          .kind = EventKind::kStepEnd,
          .flags = drops_ == step_drops_ ? std::uint8_t{0} : spool::kLossy,
          .depth = 0,
          .stamp = 0};
}

[[gnu::cold, gnu::noinline]] std::uint32_t ThreadRecorder::AddPath(std::uint32_t parent,
                                                                   std::uint32_t scope) {
  const std::uint32_t path = process_.FindOrAddPath(parent, scope);
  if (path != spool::kNoName) paths_.Add(parent, scope, path);
  return path;
}

[[gnu::cold, gnu::noinline]] std::uint32_t ThreadRecorder::NameAtFirstUse(std::uint32_t series) {
  const std::uint32_t name = process_.NameSeries(series);
  if (name != spool::kNoName) return name;
  ++drops_;
  process_.CountNoName();
  return spool::kNoName;
}

inline void ThreadRecorder::Add(const spool::Event& event, std::uint64_t now_ns) {
  if (!producer_.Push(event)) [[unlikely]] {
    AddToNextRing(event, now_ns);
  }
}

[[gnu::cold]] void ThreadRecorder::AddToNextRing(spool::Event event, std::uint64_t now_ns) {
  // The slot for the ring that is left is free: PlanNextRing plans none while it is not.
  Ring* next = offered_.exchange(nullptr, std::memory_order_acq_rel);
  if (next == nullptr && producer_.ring() == nullptr) {
    switch (early_.Add(event, offered_)) {
      case EarlyEvents::Kept::kYes:
        return;
      case EarlyEvents::Kept::kNoRoom:
        ++drops_;
        return process_.CountNoRing();
      case EarlyEvents::Kept::kRingReady:
        next = offered_.exchange(nullptr, std::memory_order_acq_rel);
    }
  }
  if (next == nullptr) {
    ++drops_;
    return producer_.CountDrop(now_ns);
  }
  if (Ring* full = producer_.ring()) {
    full->header().next_ring.store(next->header().ring, std::memory_order_relaxed);
    full->header().state.store(spool::kRingSucceeded, std::memory_order_release);
    retired_.store(full, std::memory_order_release);
  }
  current_.store(next, std::memory_order_release);
  producer_.Attach(next);
  if (!producer_.Push(event)) {
    ++drops_;
    producer_.CountDrop(now_ns);
  }
}

void ThreadRecorder::CountLate() {
  ++drops_;
  if (producer_.ring() == nullptr) return process_.CountNoRing();
  producer_.CountDrop(NowNs());
}

Ring::Spec ThreadRecorder::FirstRing(std::uint32_t thread) {
  Ring::Spec spec;
  spec.capacity = kFirstCapacity;
  spec.thread = thread;
  spec.created_ns = MonotonicNs();
  return spec;
}

Ring::Spec ThreadRecorder::PlanNextRing() const {
  Ring::Spec spec = FirstRing(thread_);
  spec.capacity = 0;
  std::memcpy(spec.thread_name, thread_name_, sizeof(spec.thread_name));
  spec.thread_id = thread_id_;
  Ring* current = current_.load(std::memory_order_acquire);
  if (offered_.load(std::memory_order_acquire) != nullptr ||
      retired_.load(std::memory_order_acquire) != nullptr) {
    return spec;
  }
  if (current == nullptr) {
    spec.capacity = kFirstCapacity;
  } else if (current->IsFillingUp() && current->capacity() < kCapacityMax) {
    spec.capacity = current->capacity() * kGrowth;
    spec.previous = current->header().ring;
  }
  return spec;
}

void ThreadRecorder::OfferRing(std::unique_ptr<Ring> ring) {
  early_.MoveTo(std::move(ring), offered_);
}

std::unique_ptr<Ring> ThreadRecorder::TakeRetired() {
  return std::unique_ptr<Ring>(retired_.exchange(nullptr, std::memory_order_acq_rel));
}

std::uint64_t ThreadRecorder::dropped_count() const {
  std::uint64_t count = 0;
  for (Ring* ring :
       {current_.load(std::memory_order_acquire), offered_.load(std::memory_order_acquire),
        retired_.load(std::memory_order_acquire)}) {
    if (ring != nullptr) count += ring->header().dropped.load(std::memory_order_acquire);
  }
  return count;
}

ThreadRecorder::Rings ThreadRecorder::End() {
  Rings rings{std::unique_ptr<Ring>(current_.exchange(nullptr)),
              std::unique_ptr<Ring>(offered_.exchange(nullptr)), TakeRetired(), early_.TakeAll()};
  producer_.Attach(nullptr);
  for (Ring* ring : {rings.current.get(), rings.offered.get()}) {
    if (ring != nullptr) {
      ring->header().state.store(spool::kRingEnded, std::memory_order_release);
    }
  }
  return rings;
}

}  // namespace stepwell::recorder
