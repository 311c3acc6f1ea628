#include "client/recorder/src/process_writer.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>

#include "client/recorder/src/monotonic.h"

namespace stepwell::recorder {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaintenancePeriod{250};
constexpr milliseconds kMaintenancePeriodFilling{20};
constexpr milliseconds kAckPollFirst{1};
constexpr milliseconds kAckPollMax{20};
// Nobody came to drain this writer: waiting longer only delays the trial's exit.
constexpr std::uint64_t kUnseenWaitNs = 2'000'000'000;

std::int32_t Successor(std::int32_t batch) {
  return batch == std::numeric_limits<std::int32_t>::max() ? batch : batch + 1;
}

}  // namespace

ProcessWriter::ProcessWriter(std::unique_ptr<SpoolWriter> spool, const Catalog& catalog,
                             std::mutex& mutex, GateWord& gate, std::uint32_t generation)
    : spool_(std::move(spool)),
      catalog_(catalog),
      mutex_(mutex),
      gate_(gate),
      generation_(generation),
      names_(spool_->names(), spool_->header().names_bytes) {
  const std::lock_guard lock(mutex_);
  for (std::uint32_t series = 1; series <= catalog_.series_count(); ++series) {
    AddSeriesLocked(series);
  }
  gate_.store(Gate::Word(generation_, true), std::memory_order_release);
}

ProcessWriter::~ProcessWriter() { (void)Close(0); }

ThreadRecorder* ProcessWriter::StartThread(std::uint32_t serial) {
  std::uint32_t index = 0;
  {
    const std::lock_guard lock(mutex_);
    index = thread_count_++;
  }
  auto thread = std::make_unique<ThreadRecorder>(*this, index, serial);
  const std::lock_guard lock(mutex_);
  return threads_.emplace_back(std::move(thread)).get();
}

void ProcessWriter::EndThread(ThreadRecorder* thread) {
  const std::lock_guard lock(mutex_);
  ThreadRecorder::Rings rings = thread->End();
  RetireLocked(std::move(rings.current));
  RetireLocked(std::move(rings.offered));
  RetireLocked(std::move(rings.retired));
  threads_.remove_if([thread](const auto& owned) { return owned.get() == thread; });
  FreeDrainedLocked();
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
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      if (stop_.wait_for(lock, period, [this] { return is_stopping_; })) return;
    }
    period = Maintain() ? kMaintenancePeriodFilling : kMaintenancePeriod;
  }
}

bool ProcessWriter::Maintain() {
  std::vector<Ring::Spec> planned;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& thread : threads_) {
      RetireLocked(thread->TakeRetired());
      if (const Ring::Spec spec = thread->PlanNextRing(); spec.capacity > 0) {
        planned.push_back(spec);
      }
    }
    FreeDrainedLocked();
  }
  for (const Ring::Spec& spec : planned) {
    std::unique_ptr<Ring> ring = MakeRing(spec);
    if (ring == nullptr) continue;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(threads_.begin(), threads_.end(), [&spec](const auto& thread) {
      return thread->thread() == spec.thread;
    });
    if (found != threads_.end()) {
      (*found)->OfferRing(std::move(ring));
    } else {
      ring->header().state.store(spool::kRingEnded, std::memory_order_release);
      RetireLocked(std::move(ring));
    }
  }
  return !planned.empty();
}

std::unique_ptr<Ring> ProcessWriter::MakeRing(const Ring::Spec& spec) {
  return spool_->MakeRing(spec);
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

void ProcessWriter::ObserveControl() {
  const std::uint32_t control = spool_->header().control.load(std::memory_order_relaxed);
  const bool wanted = (control & spool::kControlOff) == 0;
  std::uint32_t expected = Gate::Word(generation_, !wanted);
  // Only from open to open: a gate closed meanwhile stays closed.
  if (gate_.compare_exchange_strong(expected, Gate::Word(generation_, wanted),
                                    std::memory_order_relaxed)) {
    pause_count_.fetch_add(1, std::memory_order_relaxed);
  }
}

std::int32_t ProcessWriter::EndStep(std::int32_t wish, std::uint64_t now_ns) {
  std::int32_t batch = next_batch_.load(std::memory_order_relaxed);
  std::int32_t taken = 0;
  do {
    taken = wish >= 0 ? wish : batch;
  } while (!next_batch_.compare_exchange_weak(batch, Successor(taken), std::memory_order_relaxed));

  spool::WriterHeader& header = spool_->header();
  std::uint64_t last = header.last_step.load(std::memory_order_relaxed);
  std::uint64_t stamped = 0;
  do {
    stamped = spool::PackLastStep(static_cast<std::uint32_t>(last >> 32) + 1, taken);
  } while (!header.last_step.compare_exchange_weak(last, stamped, std::memory_order_release));
  header.last_step_ns.store(now_ns, std::memory_order_release);
  return taken;
}

void ProcessWriter::SkipToBatch(std::int32_t last) {
  if (last >= 0) next_batch_.store(Successor(last), std::memory_order_relaxed);
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
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return false;
    is_stopping_ = true;
    // Only if it is still this writer's: in a forked child the word reads 0 and stays 0.
    std::uint32_t word = gate_.load(std::memory_order_relaxed);
    if (Gate::Generation(word) == generation_) gate_.store(0, std::memory_order_release);
  }
  stop_.notify_all();
  if (maintenance_.joinable()) maintenance_.join();
  spool::WriterHeader& header = spool_->header();
  header.closed_ns.store(MonotonicNs(), std::memory_order_relaxed);
  header.state.store(spool::kWriterClosed, std::memory_order_release);
  const bool is_stored = !spool_->is_memory_only() && WaitForAck(timeout_ms);
  spool_->Unlock();
  const std::lock_guard lock(mutex_);
  // Rings of living threads stay mapped until these end: one may be in the middle of a push.
  FreeLocked(retired_.begin());
  names_.Close();
  spool_->UnmapNames();
  return is_stored;
}

bool ProcessWriter::WaitForAck(std::int64_t timeout_ms) {
  const spool::WriterHeader& header = spool_->header();
  const std::uint64_t begin_ns = MonotonicNs();
  milliseconds poll = kAckPollFirst;
  for (;;) {
    const std::uint32_t state = header.agent_state.load(std::memory_order_acquire);
    if (state == spool::kAgentAcked) return true;
    const std::uint64_t waited_ns = MonotonicNs() - begin_ns;
    const bool is_unseen = state == spool::kAgentNone && waited_ns >= kUnseenWaitNs;
    if (state == spool::kAgentRefused || is_unseen ||
        waited_ns >=
            static_cast<std::uint64_t>(std::max<std::int64_t>(timeout_ms, 0)) * 1'000'000) {
      return false;
    }
    std::this_thread::sleep_for(poll);
    poll = std::min(poll * 2, kAckPollMax);
  }
}

}  // namespace stepwell::recorder
