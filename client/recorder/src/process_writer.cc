#include "client/recorder/src/process_writer.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>

#include "client/recorder/include/stepwell/recorder.h"
#include "client/recorder/src/clock_keeper.h"
#include "client/recorder/src/monotonic.h"
#include "client/recorder/src/thread_barrier.h"

namespace stepwell::recorder {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaintenancePeriod{250};
constexpr milliseconds kMaintenancePeriodFilling{20};
constexpr std::chrono::microseconds kCallPoll{50};
// A call takes a microsecond, unless its thread lost its core: so long it may find none.
constexpr std::uint64_t kCallWaitNs = 1'000'000'000;
constexpr milliseconds kAckPollFirst{1};
constexpr milliseconds kAckPollMax{20};
// Nobody came to drain this writer: waiting longer only delays the trial's exit.
constexpr std::uint64_t kUnseenWaitNs = 2'000'000'000;
constexpr milliseconds kFirstLookWait{50};
// A start takes a millisecond, unless the program lies on a file server that hangs.
constexpr milliseconds kHandOverWait{1000};

std::int32_t Successor(std::int32_t batch) {
  return batch == std::numeric_limits<std::int32_t>::max() ? batch : batch + 1;
}

// Of the steps that ended and the next one's batch, as Stepping has them.
constexpr std::uint64_t kOneStep = std::uint64_t{1} << 32;

std::int32_t NextBatch(std::uint64_t ended) {
  return static_cast<std::int32_t>(ended & (kOneStep - 1));
}

std::uint64_t WithNextBatch(std::uint64_t ended, std::int32_t batch) {
  return (ended & ~(kOneStep - 1)) | static_cast<std::uint32_t>(batch);
}

}  // namespace

ProcessWriter::ProcessWriter(std::unique_ptr<SpoolWriter> spool, const Catalog& catalog,
                             std::mutex& mutex, GateLine& line, std::uint32_t generation)
    : spool_(std::move(spool)),
      catalog_(catalog),
      mutex_(mutex),
      line_(line),
      generation_(generation),
      names_(spool_->names(), spool_->header().names_bytes) {
  stepping_.header = &spool_->header();
  MakeSpare();
  const std::lock_guard lock(mutex_);
  const std::size_t named_count = spool_->is_worker() ? 0 : catalog_.series_count();
  for (std::uint32_t series = 1; series <= named_count; ++series) AddSeriesLocked(series);
  const bool is_on = (spool_->header().control.load() & spool::kControlOff) == 0;
  line_.word.store(Gate::Word(generation_, is_on), std::memory_order_release);
}

ProcessWriter::~ProcessWriter() {
  (void)Finish();
  Release();
}

ThreadRecorder* ProcessWriter::StartThreadLocked(std::uint32_t serial) {
  std::unique_ptr<Ring> ring = std::move(spare_);
  const std::uint32_t index = ring == nullptr ? thread_count_++ : ring->header().thread;
  if (serial_first_ == 0) serial_first_ = serial;
  threads_.push_back(std::make_unique<ThreadRecorder>(*this, std::move(ring), index, serial));
  is_work_waiting_ = true;
  wake_.notify_one();
  return threads_.back().get();
}

void ProcessWriter::EndThread(ThreadRecorder* thread) {
  const std::lock_guard lock(mutex_);
  const Ring::Spec spec = thread->PlanNextRing();
  ThreadRecorder::Rings rings = thread->End();
  if (!rings.early.empty() && is_final_) {
    spool_->header().dropped_no_ring.fetch_add(rings.early.size(), std::memory_order_relaxed);
    early_count().fetch_sub(rings.early.size(), std::memory_order_relaxed);
  } else if (!rings.early.empty()) {
    orphans_.push_back({spec, std::move(rings.early)});
    is_work_waiting_ = true;
    wake_.notify_one();
  }
  RetireLocked(std::move(rings.current));
  RetireLocked(std::move(rings.offered));
  RetireLocked(std::move(rings.retired));
  threads_.remove_if([thread](const auto& owned) { return owned.get() == thread; });
  if (is_final_) {
    FreeLocked(retired_.begin());
  } else {
    FreeDrainedLocked();
  }
}

void ProcessWriter::StartMaintenance() {
  // The trial's signals are not for this thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    maintenance_ = std::thread([this] { RunMaintenance(); });
    pthread_setname_np(maintenance_.native_handle(), "stepwell-rings");
  } catch (...) {
    // No thread: rings stay at their first size.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void ProcessWriter::RunMaintenance() {
  milliseconds period = kMaintenancePeriod;
  ClockKeeper clock(line_.clock);
  for (;;) {
    // At once: a short run wants its agent soon.
    if (LooksAfterAgent()) period = std::min(period, starter_->Look(MonotonicNs()));
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, period, [this] { return is_stopping_ || is_work_waiting_; });
      if (is_stopping_) return;
    }
    clock.Look();
    period = Maintain() ? kMaintenancePeriodFilling : kMaintenancePeriod;
  }
}

// Workers of a process that records leave it to that one.
bool ProcessWriter::LooksAfterAgent() const {
  return starter_ != nullptr && (!spool_->is_worker() || spool_->IsUnattended());
}

void ProcessWriter::AwaitFirstLook() const {
  if (starter_ != nullptr && maintenance_.joinable()) starter_->AwaitFirstLook(kFirstLookWait);
}

void ProcessWriter::StopMaintenance() {
  if (!maintenance_.joinable()) return;
  if (starter_ != nullptr && !starter_->HandOver(kHandOverWait)) {
    // It comes back, if ever, to a writer that is kept, and ends.
    maintenance_.detach();
    is_left_behind_ = true;
    (void)starter_.release();
    return;
  }
  maintenance_.join();
  if (starter_ != nullptr) starter_->TakeOver();
}

bool ProcessWriter::Maintain() {
  // A worker may never end a step, where others look at it.
  if (spool_->is_worker()) ObserveControl();
  spool_->KeepFiles();
  std::vector<Ring::Spec> planned;
  std::vector<Orphan> orphans;
  {
    const std::lock_guard lock(mutex_);
    is_work_waiting_ = false;
    orphans.swap(orphans_);
    for (const auto& thread : threads_) {
      RetireLocked(thread->TakeRetired());
      if (const Ring::Spec spec = thread->PlanNextRing(); spec.capacity > 0) {
        planned.push_back(spec);
      }
    }
    FreeDrainedLocked();
  }
  bool is_made = false;
  for (const Ring::Spec& spec : planned) {
    std::unique_ptr<Ring> ring = spool_->MakeRing(spec);
    if (ring == nullptr) continue;
    is_made = true;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(threads_.begin(), threads_.end(), [&spec](const auto& thread) {
      return thread->thread() == spec.thread;
    });
    if (found != threads_.end()) {
      (*found)->OfferRing(std::move(ring));
    } else {
      EndRingLocked(std::move(ring));
    }
  }
  for (Orphan& orphan : orphans) {
    if (!PlaceOrphan(std::move(orphan))) is_made = false;
  }
  MakeSpare();
  return is_made;
}

// The only ring that is made before its thread is known.
void ProcessWriter::MakeSpare() {
  Ring::Spec spec;
  {
    const std::lock_guard lock(mutex_);
    if (spare_ != nullptr) return;
    spec = ThreadRecorder::FirstRing(thread_count_++);
  }
  std::unique_ptr<Ring> ring = spool_->MakeRing(spec);
  const std::lock_guard lock(mutex_);
  spare_ = std::move(ring);
}

bool ProcessWriter::PlaceOrphan(Orphan orphan) {
  std::unique_ptr<Ring> ring = spool_->MakeRing(orphan.spec);
  const std::lock_guard lock(mutex_);
  if (ring == nullptr) {
    orphans_.push_back(std::move(orphan));
    return false;
  }
  PushEarly(orphan.events, *ring, early_count());
  ring->header().state.store(spool::kRingEnded, std::memory_order_release);
  RetireLocked(std::move(ring));
  return true;
}

// Its thread ended while it was made: it takes what that one left. A thread has one first ring.
void ProcessWriter::EndRingLocked(std::unique_ptr<Ring> ring) {
  const auto left = std::find_if(orphans_.begin(), orphans_.end(), [&ring](const Orphan& orphan) {
    return orphan.spec.thread == ring->header().thread;
  });
  if (left != orphans_.end()) {
    PushEarly(left->events, *ring, early_count());
    orphans_.erase(left);
  }
  ring->header().state.store(spool::kRingEnded, std::memory_order_release);
  RetireLocked(std::move(ring));
}

void ProcessWriter::RetireLocked(std::unique_ptr<Ring> ring) {
  if (ring != nullptr) retired_.push_back(std::move(ring));
}

void ProcessWriter::FreeDrainedLocked() {
  const auto drained =
      std::partition(retired_.begin(), retired_.end(), [this](const std::unique_ptr<Ring>& ring) {
        // In memory nobody reads: waiting for a reader would keep it for ever.
        return !spool_->is_memory_only() && !ring->IsDrained();
      });
  FreeLocked(drained);
}

void ProcessWriter::FreeLocked(std::vector<std::unique_ptr<Ring>>::iterator first) {
  for (auto ring = first; ring != retired_.end(); ++ring) {
    dropped_of_freed_ += (*ring)->header().dropped.load(std::memory_order_acquire);
    spool_->FreeRing(std::move(*ring));
  }
  retired_.erase(first, retired_.end());
}

std::uint32_t ProcessWriter::FindOrAddPath(std::uint32_t parent, std::uint32_t scope) {
  const std::lock_guard lock(mutex_);
  if (scope == 0 || scope > catalog_.scope_count()) return spool::kNoName;
  return names_.FindOrAddPath(parent, scope, catalog_.scope(scope));
}

void ProcessWriter::AddSeriesLocked(std::uint32_t series) {
  if (series_names_[series].load(std::memory_order_relaxed) != spool::kNoName) return;
  series_names_[series].store(names_.AddSeries(catalog_.series(series)), std::memory_order_release);
}

std::uint32_t ProcessWriter::NameSeries(std::uint32_t series) {
  const std::lock_guard lock(mutex_);
  if (series == 0 || series > catalog_.series_count()) return spool::kNoName;
  AddSeriesLocked(series);
  return SeriesName(series);
}

[[gnu::hot]] void ProcessWriter::ObserveControl() {
  const spool::WriterHeader& header = *stepping_.header;
  const std::uint32_t request = header.capture_request.load(std::memory_order_relaxed);
  if (request != stepping_.capture_request.load(std::memory_order_relaxed)) [[unlikely]] {
    stepping_.capture_request.store(request, std::memory_order_relaxed);
    __atomic_store_n(&stepwell_capture_request, request, __ATOMIC_RELAXED);
  }
  const bool wanted = (header.control.load(std::memory_order_relaxed) & spool::kControlOff) == 0;
  std::uint32_t expected = Gate::Word(generation_, !wanted);
  // Looked at before: to exchange is to wait for all that this core has stored, whatever comes of it.
  if (line_.word.load(std::memory_order_relaxed) != expected) [[likely]] {
    return;
  }
  // Only from open to open: a gate closed meanwhile stays closed.
  if (line_.word.compare_exchange_strong(expected, Gate::Word(generation_, wanted),
                                         std::memory_order_relaxed)) {
    stepping_.pause_count.fetch_add(1, std::memory_order_relaxed);
  }
}

[[gnu::hot]] std::int32_t ProcessWriter::EndStep(std::int32_t wish, std::uint64_t now_ns,
                                                 std::uint32_t thread) {
  std::uint64_t ended = stepping_.ended.load(std::memory_order_relaxed);
  std::int32_t taken = 0;
  std::uint64_t next = 0;
  do {
    taken = wish >= 0 ? wish : NextBatch(ended);
    next = WithNextBatch(ended + kOneStep, Successor(taken));
  } while (!stepping_.ended.compare_exchange_weak(ended, next, std::memory_order_relaxed));

  const std::uint64_t stamp = spool::PackLastStep(static_cast<std::uint32_t>(next >> 32), taken);
  if (stepping_.thread.load(std::memory_order_relaxed) == thread) [[likely]] {
    stepping_.header->last_step.store(stamp, std::memory_order_release);
  } else {
    StampOfMany(stamp, thread);
  }
  stepping_.header->last_step_ns.store(now_ns, std::memory_order_release);
  return taken;
}

// Where several threads end steps, the last step is the one that was counted last. (The thread that was alone
// until now may be about to stamp its own: it then stands there until the next step ends.)
[[gnu::cold, gnu::noinline]] void ProcessWriter::StampOfMany(std::uint64_t stamp,
                                                             std::uint32_t thread) {
  constexpr std::uint32_t kMany = ~std::uint32_t{0};
  std::uint32_t alone = stepping_.thread.load(std::memory_order_relaxed);
  if (alone != 0 || !stepping_.thread.compare_exchange_strong(alone, thread)) {
    stepping_.thread.store(kMany, std::memory_order_relaxed);
  }
  std::uint64_t last = stepping_.header->last_step.load(std::memory_order_relaxed);
  // Of two counts, modulo 2^32, the later one is ahead by less than half of that.
  while (
      static_cast<std::int32_t>((stamp >> 32) - (last >> 32)) > 0 &&
      !stepping_.header->last_step.compare_exchange_weak(last, stamp, std::memory_order_release)) {
  }
}

void ProcessWriter::SkipToBatch(std::int32_t last) {
  if (last < 0) return;
  std::uint64_t ended = stepping_.ended.load(std::memory_order_relaxed);
  while (!stepping_.ended.compare_exchange_weak(ended, WithNextBatch(ended, Successor(last)),
                                                std::memory_order_relaxed)) {
  }
}

std::uint64_t ProcessWriter::dropped_count() {
  const std::lock_guard lock(mutex_);
  std::uint64_t count = dropped_of_freed_ + spool_->header().dropped_no_ring.load() +
                        spool_->header().dropped_no_name.load();
  for (const auto& thread : threads_) count += thread->dropped_count();
  for (const auto& ring : retired_) count += ring->header().dropped.load();
  return count;
}

bool ProcessWriter::Close(std::int64_t timeout_ms) {
  if (!Finish()) return false;
  const bool is_stored = AwaitAckOf([this] { return AskAck(); }, timeout_ms) == Ack::kStored;
  Release();
  return is_stored;
}

bool ProcessWriter::Finish(LateCalls late) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return false;
    is_stopping_ = true;
    // Only if it is still this writer's: in a forked child the word reads 0 and stays 0.
    std::uint32_t word = line_.word.load(std::memory_order_relaxed);
    if (Gate::Generation(word) == generation_) {
      const bool counts = late == LateCalls::kCount;
      line_.word.store(counts ? Gate::ShutWord(generation_) : 0, std::memory_order_release);
    }
  }
  wake_.notify_all();
  StopMaintenance();
  AwaitCallsOnTheirWay();
  PlaceLastEvents();
  spool::WriterHeader& header = spool_->header();
  header.closed_ns.store(MonotonicNs(), std::memory_order_relaxed);
  header.state.store(spool::kWriterClosed, std::memory_order_release);
  finished_ns_ = MonotonicNs();
  return true;
}

void ProcessWriter::Release() {
  if (is_released_) return;
  is_released_ = true;
  starter_.reset();
  spool_->Unlock();
  const std::lock_guard lock(mutex_);
  // Rings of living threads stay mapped until these end: one may be in the middle of a push.
  FreeLocked(retired_.begin());
  names_.Close();
  spool_->UnmapNames();
  spool_->CloseDirectories();
  is_over_ = !is_left_behind_;
}

void ProcessWriter::AwaitCallsOnTheirWay() {
  OrderAllThreads();
  const std::uint64_t begin_ns = MonotonicNs();
  for (;;) {
    std::uint64_t entered_count = 0;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& thread : threads_) entered_count += thread->is_entered() ? 1 : 0;
    }
    if (entered_count == 0) return;
    if (MonotonicNs() - begin_ns > kCallWaitNs) {
      // What these record may come too late to be sealed: rather told as lost than lost in silence.
      spool_->header().dropped_no_ring.fetch_add(entered_count, std::memory_order_relaxed);
      return;
    }
    std::this_thread::sleep_for(kCallPoll);
  }
}

// What still waits for a ring gets one now, or is counted. A close may wait for the file system.
void ProcessWriter::PlaceLastEvents() {
  std::vector<Orphan> last;
  {
    const std::lock_guard lock(mutex_);
    is_final_ = true;
    last.swap(orphans_);
    for (const auto& thread : threads_) {
      Orphan waiting{ThreadRecorder::FirstRing(thread->thread()), thread->TakeEarly()};
      if (!waiting.events.empty()) last.push_back(std::move(waiting));
    }
    if (spare_ != nullptr) spare_->header().state.store(spool::kRingEnded);
    RetireLocked(std::move(spare_));
  }
  for (Orphan& waiting : last) (void)PlaceOrphan(std::move(waiting));
  const std::lock_guard lock(mutex_);
  for (const Orphan& lost : orphans_) {
    spool_->header().dropped_no_ring.fetch_add(lost.events.size(), std::memory_order_relaxed);
    early_count().fetch_sub(lost.events.size(), std::memory_order_relaxed);
  }
  orphans_.clear();
}

ProcessWriter::Ack ProcessWriter::AwaitAckOf(const std::function<Ack()>& ask,
                                             std::int64_t timeout_ms) {
  const std::uint64_t begin_ns = MonotonicNs();
  const auto wait_ns =
      static_cast<std::uint64_t>(std::max<std::int64_t>(timeout_ms, 0)) * 1'000'000;
  milliseconds poll = kAckPollFirst;
  for (;;) {
    const Ack told = ask();
    if (told != Ack::kNotYet || MonotonicNs() - begin_ns >= wait_ns) return told;
    std::this_thread::sleep_for(poll);
    poll = std::min(poll * 2, kAckPollMax);
  }
}

ProcessWriter::Ack ProcessWriter::AckIn(const spool::WriterHeader& header) {
  switch (header.agent_state.load(std::memory_order_acquire)) {
    case spool::kAgentAcked:
      return Ack::kStored;
    case spool::kAgentRefused:
    case spool::kAgentSpooled:
      return Ack::kNever;
    default:
      return Ack::kNotYet;
  }
}

ProcessWriter::Ack ProcessWriter::AskAck() {
  if (spool_->is_memory_only()) return Ack::kNever;
  const Ack told = AckIn(spool_->header());
  if (told != Ack::kNotYet) return told;
  const std::uint64_t now_ns = MonotonicNs();
  // What a run recorded that was too short for an agent to come is worth one, too.
  if (LooksAfterAgent()) (void)starter_->Look(now_ns);
  const bool is_seen =
      spool_->header().agent_state.load(std::memory_order_acquire) != spool::kAgentNone;
  return !is_seen && IsHopeless(now_ns) ? Ack::kNever : Ack::kNotYet;
}

bool ProcessWriter::IsHopeless(std::uint64_t now_ns) const {
  const std::uint64_t since_ns = starter_ == nullptr ? finished_ns_ : starter_->failed_since_ns();
  return since_ns != 0 && now_ns - std::min(since_ns, now_ns) >= kUnseenWaitNs;
}

}  // namespace stepwell::recorder
