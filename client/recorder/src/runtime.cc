#include "client/recorder/src/runtime.h"

#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "client/recorder/src/exit_hook.h"
#include "client/recorder/src/exit_wait.h"
#include "client/recorder/src/file_room.h"
#include "client/recorder/src/monotonic.h"
#include "client/recorder/src/spool_format.h"
#include "client/recorder/src/spool_place.h"
#include "client/recorder/src/thread_barrier.h"
#include "client/recorder/src/thread_slot.h"

namespace {

// What everybody sees before the first open.
constinit const std::uint32_t kClosedGate = 0;

}  // namespace

const std::uint32_t* stepwell_gate = &kClosedGate;
std::uint32_t stepwell_capture_request = 0;

namespace stepwell::recorder {
namespace {

// The writer that is opened now.
Identity IdentityNow(Identity wishes, const Environment& environment,
                     std::vector<std::string>& remarks) {
  wishes.writer = NewUuid();
  wishes.boot_id = ReadBootId();
  wishes.pid = getpid();
  wishes.opened_time_us = static_cast<std::int64_t>(ReadClockNs(CLOCK_REALTIME) / 1000);
  wishes.opened_monotonic_ns = MonotonicNs();
  return ResolveIdentity(std::move(wishes), environment, remarks);
}

std::string Joined(const std::vector<std::string>& remarks) {
  std::string text;
  for (const std::string& remark : remarks) text += (text.empty() ? "" : "; ") + remark;
  return text;
}

// An exit may come from anywhere, even from a signal handler within a call that holds the lock:
// it must not hang. By looks, for a time limit of a std::mutex is one of the wall clock.
bool LockWithin(std::mutex& mutex, std::int64_t wait_ms) {
  const std::uint64_t until_ns = MonotonicNs() + static_cast<std::uint64_t>(wait_ms) * 1'000'000;
  while (pthread_mutex_trylock(mutex.native_handle()) != 0) {
    if (MonotonicNs() >= until_ns) return false;
    const timespec pause{.tv_sec = 0, .tv_nsec = 1'000'000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

}  // namespace

Runtime& Runtime::Get() {
  static Runtime* runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime() {
  MakePage();
  has_thread_key_ = pthread_key_create(&thread_key_, &Runtime::EndThread) == 0;
  // A lock that another thread held at the fork would stay locked in the child for ever.
  pthread_atfork(
      &BeforeFork, [] { Get().mutex_.unlock(); }, &AfterForkInChild);
}

void Runtime::MakePage() {
  void* mapped = MapPrivate(spool::kPageBytes);
  // Without the page there is no gate to open: Open stays closed.
  static_assert(sizeof(GateLine) <= spool::kPageBytes);
  static GateLine spare;
  if (mapped != nullptr) madvise(mapped, spool::kPageBytes, MADV_WIPEONFORK);
  page_ = mapped == nullptr ? &spare : new (mapped) GateLine;
  page_->word.store(0);
  page_->is_own.store(1);
}

void Runtime::BeforeFork() {
  Runtime& runtime = Get();
  runtime.mutex_.lock();
  runtime.gate_at_fork_ = runtime.page_->word.load();
}

// Costs no file, no thread and no lock: most children never record. The gate that is left open leads
// the first call that records to JoinParent. (A child made without these handlers finds the page
// wiped, and records nothing.)
void Runtime::AfterForkInChild() {
  Runtime& runtime = Get();
  // The parent's, which is not to be told that this thread ends.
  thread_slot = {};
  if (runtime.has_thread_key_) pthread_setspecific(runtime.thread_key_, nullptr);
  runtime.page_->is_own.store(0);
  runtime.cannot_join_ = false;
  const bool joins = (runtime.gate_at_fork_ & Gate::kOpen) != 0 && runtime.open_ != nullptr &&
                     !runtime.open_->spool().is_memory_only();
  const bool is_on = (runtime.gate_at_fork_ & Gate::kOn) != 0;
  runtime.page_->word.store(joins ? Gate::Word(++runtime.generation_, is_on) : 0);
  runtime.mutex_.unlock();
  // Not taken before the fork, for it is held while a close waits; the child's starts unlocked.
  new (&runtime.opening_) std::mutex;
}

bool Runtime::WillJoinLocked() const {
  return (page_->word.load() & Gate::kOpen) != 0 && !cannot_join_;
}

bool Runtime::JoinParent(std::uint32_t generation) {
  const int errno_before = errno;  // the trial's
  const Join join = TryJoin(generation);
  // A daemon that begins after all others are gone, or when their agent is done with them: a writer
  // of its own in the same attempt.
  const bool is_opened = join == Join::kOver && Open(opened_) != STEPWELL_CLOSED;
  errno = errno_before;
  return join == Join::kJoined || is_opened;
}

Runtime::Join Runtime::TryJoin(std::uint32_t generation) {
  const std::lock_guard opening(opening_);
  const ProcessWriter* parent = nullptr;
  {
    const std::lock_guard lock(mutex_);
    // Another thread has, or has opened a writer, or closed.
    if (!IsForkedChild() || open_ == nullptr) return Join::kJoined;
    if (cannot_join_) return Join::kRefused;
    parent = open_;
  }
  std::string message;
  std::unique_ptr<SpoolWriter> spool = parent->spool().CreateWorker(&message);
  if (spool == nullptr) {
    const std::lock_guard lock(mutex_);
    cannot_join_ = true;
    message_ = std::move(message);
    return Join::kRefused;
  }
  if (spool->IsAlone() || spool->HasWriterEnded()) {
    spool->Withdraw();
    return Join::kOver;
  }
  auto writer =
      std::make_unique<ProcessWriter>(std::move(spool), catalog_, mutex_, *page_, generation);
  writer->LookAfterAgent(parent->MakeStarterAgain());
  PrepareThreadBarrier();
  writer->StartMaintenance();
  const std::lock_guard lock(mutex_);
  ForgetParentLocked();
  UseLocked(std::move(writer), STEPWELL_RECORDING, "");
  return Join::kJoined;
}

void Runtime::ForgetParentLocked() {
  // Its files, lock and threads are the parent's. The memory stays: destructors would write there.
  (void)new std::vector<std::shared_ptr<ProcessWriter>>(std::move(writers_));
  writers_.clear();
  open_ = nullptr;
  offers_capture_ = false;
  state_ = STEPWELL_CLOSED;
  thread_slot = {};
  if (has_thread_key_) pthread_setspecific(thread_key_, nullptr);
  page_->is_own.store(1);
}

stepwell_state Runtime::Open(OpenWishes wishes) {
  const std::lock_guard opening(opening_);
  {
    const std::lock_guard lock(mutex_);
    if (IsForkedChild()) {
      ForgetParentLocked();
      page_->word.store(0);
    }
    if (open_ != nullptr) return state_;
    told_.clear();
  }
  const Environment environment = EnvironmentOf(wishes.variables);
  if (IsSwitchedOn(environment, "STEPWELL_DISABLED")) {
    const std::lock_guard lock(mutex_);
    message_ = "STEPWELL_DISABLED is set";
    return state_ = STEPWELL_DISABLED;
  }
  if (!has_thread_key_) {
    const std::lock_guard lock(mutex_);
    message_ = "this process has used up its thread keys (PTHREAD_KEYS_MAX)";
    return state_ = STEPWELL_CLOSED;
  }
  std::vector<std::string> remarks;
  const Identity identity = IdentityNow(wishes.identity, environment, remarks);
  opened_ = wishes;
  opened_.identity = identity;
  opened_.variables = nullptr;  // the caller's, for as long as this call lasts
  SpoolPlace place = SpoolPlace::Find(identity, wishes.spool_dir, environment);
  if (place.writer == nullptr) return STEPWELL_CLOSED;
  remarks.insert(remarks.begin(), place.remarks.begin(), place.remarks.end());
  if (identity.server == spool::kServerOffline && !place.writer->is_memory_only()) {
    // Traces lie where the user wanted them, outside of the spool.
    const bool has_traces = !identity.tracing.directory.empty() && identity.tracing.uploads;
    remarks.push_back(std::string("offline: 'stepwell upload ") +
                      (has_traces ? "--named-files " : "") + place.root.path + "' sends it");
  }

  const bool is_memory_only = place.writer->is_memory_only();
  const stepwell_state state = is_memory_only ? STEPWELL_MEMORY_ONLY : STEPWELL_RECORDING;
  const std::string writer_path = place.writer->directory_path();
  auto writer = std::make_unique<ProcessWriter>(std::move(place.writer), catalog_, mutex_, *page_,
                                                ++generation_);
  // A system agent is started by the machine.
  if (!is_memory_only && place.root.kind != RootKind::kSystem) {
    writer->LookAfterAgent(AgentStarter::Make(wishes, place.root, writer_path));
  }
  PrepareThreadBarrier();
  writer->StartMaintenance();
  writer->AwaitFirstLook();
  // Registered this late, it runs before the destructors of what the program made earlier.
  if (!closes_at_exit_) closes_at_exit_ = CallAtExit(&Runtime::CloseAtExit);
  {
    const std::lock_guard lock(mutex_);
    UseLocked(std::move(writer), state, Joined(remarks));
    // An agent of all users follows no path that one of them names.
    traced_path_ = place.root.kind == RootKind::kSystem ? std::string() : writer_path;
  }
  DropWritersThatAreOver();
  return state;
}

void Runtime::DropWritersThatAreOver() {
  for (;;) {
    // One at a time, without memory for a list of them. Its destructor takes the lock.
    std::shared_ptr<ProcessWriter> over;
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(writers_.begin(), writers_.end(),
                                    [](const auto& writer) { return writer->IsOverLocked(); });
    // The newest is asked what it dropped.
    if (found == writers_.end() || found + 1 == writers_.end()) return;
    over = std::move(*found);
    writers_.erase(found);
  }
}

void Runtime::UseLocked(std::unique_ptr<ProcessWriter> writer, stepwell_state state,
                        std::string message) {
  message_ = std::move(message);
  open_ = writers_.emplace_back(std::move(writer)).get();
  __atomic_store_n(&stepwell_gate, reinterpret_cast<const std::uint32_t*>(&page_->word),
                   __ATOMIC_RELEASE);
  state_ = state;
  open_->spool().header().capture_offered.store(offers_capture_ ? 1 : 0);
}

void Runtime::OfferCapture(bool is_offered) {
  const std::lock_guard lock(mutex_);
  offers_capture_ = is_offered;
  if (open_ != nullptr && !IsForkedChild()) {
    open_->spool().header().capture_offered.store(is_offered ? 1 : 0);
  }
}

CaptureWish Runtime::WantedCapture() {
  const std::lock_guard lock(mutex_);
  if (open_ == nullptr || IsForkedChild()) return {};
  const spool::WriterHeader& header = open_->spool().header();
  const std::uint32_t request = header.capture_request.load(std::memory_order_acquire);
  const std::uint64_t steps = header.capture_steps.load(std::memory_order_acquire);
  // Of the next one where that came between the two: it is asked for once more then.
  if (request == 0 || request != header.capture_request.load(std::memory_order_acquire)) return {};
  return {.request = request,
          .first_batch = static_cast<std::int32_t>(steps >> 32),
          .step_count = static_cast<std::int32_t>(steps & 0xffffffff)};
}

void Runtime::AnswerCapture(std::uint32_t request, std::uint32_t outcome,
                            std::uint32_t step_count) {
  const std::lock_guard lock(mutex_);
  if (open_ == nullptr || IsForkedChild()) return;
  open_->spool().header().capture_answer.store(
      spool::PackCaptureAnswer(request, outcome, step_count), std::memory_order_release);
}

bool Runtime::UploadTrace(const TraceNote& note) {
  std::string writer_path;
  {
    const std::lock_guard lock(mutex_);
    writer_path = traced_path_;
  }
  return !writer_path.empty() && LeaveTraceNote(writer_path, note);
}

bool Runtime::Close(std::int64_t timeout_ms) {
  const std::lock_guard opening(opening_);
  return CloseOpened(timeout_ms);
}

void Runtime::CloseAtExit() {
  Runtime& runtime = Get();
  if (runtime.IsForkedChild()) return;
  const std::int64_t wait_ms = ReadExitWaitMs([](const char* name) { return std::getenv(name); });
  // Held by a close that another thread is waiting in: its wait is ours.
  if (!LockWithin(runtime.opening_, wait_ms)) return;
  const std::lock_guard opening(runtime.opening_, std::adopt_lock);
  constexpr std::int64_t kLockWaitMs = 1000;
  if (!LockWithin(runtime.mutex_, kLockWaitMs)) return;
  // Of what a worker recorded, the process that forked it awaits the ack, if it lives.
  const SpoolWriter* spool = runtime.open_ == nullptr ? nullptr : &runtime.open_->spool();
  const bool is_awaited_elsewhere = spool != nullptr && spool->is_worker() && !spool->IsOrphan();
  runtime.mutex_.unlock();
  try {
    (void)runtime.CloseOpened(is_awaited_elsewhere ? 0 : wait_ms);
  } catch (...) {
    // Out of memory: the agent drains the rings as those of a process that died.
  }
}

// REQUIRES: opening_ is held.
bool Runtime::CloseOpened(std::int64_t timeout_ms) {
  const std::shared_ptr<ProcessWriter> closing = TakeOpen();
  return closing != nullptr && closing->Close(timeout_ms);
}

std::unique_ptr<Closing> Runtime::BeginClose(LateCalls late) {
  // Before: without memory for it the writer stays open.
  auto closing = std::make_unique<Closing>();
  const std::lock_guard opening(opening_);
  return closing->Begin(TakeOpen(), late) ? std::move(closing) : nullptr;
}

std::shared_ptr<ProcessWriter> Runtime::TakeOpen() {
  const std::lock_guard lock(mutex_);
  if (IsForkedChild()) {
    // The parent's is not this process's to close, nor to join from now on.
    page_->word.store(0);
    open_ = nullptr;
  }
  if (open_ == nullptr) return nullptr;
  open_ = nullptr;
  state_ = STEPWELL_CLOSED;
  message_ = "closed";
  return writers_.back();  // the newest is the one that is open
}

stepwell_state Runtime::state() {
  const std::lock_guard lock(mutex_);
  return IsForkedChild() && !WillJoinLocked() ? STEPWELL_CLOSED : state_;
}

const char* Runtime::message() {
  const std::lock_guard lock(mutex_);
  const bool is_forked = IsForkedChild();
  if (is_forked && !WillJoinLocked() && !cannot_join_) {
    return "a forked child of a process that recorded nothing";
  }
  std::vector<std::string> remarks;
  if (!message_.empty()) remarks.push_back(message_);
  // Not of the parent's starter, which may have been busy when this child was forked.
  if (open_ != nullptr && !is_forked) remarks.push_back(open_->AgentTrouble());
  if (!remarks.empty() && remarks.back().empty()) remarks.pop_back();
  std::string text = Joined(remarks);
  if (told_.empty() || told_.back() != text) told_.push_back(std::move(text));
  return told_.back().c_str();
}

std::uint64_t Runtime::dropped_count() {
  std::shared_ptr<ProcessWriter> last;
  {
    const std::lock_guard lock(mutex_);
    if (IsForkedChild() || writers_.empty()) return 0;
    last = writers_.back();
  }
  return last->dropped_count();
}

std::uint32_t Runtime::DefineScope(ScopeDefinition scope) {
  const std::lock_guard lock(mutex_);
  return catalog_.DefineScope(std::move(scope));
}

std::uint32_t Runtime::DefineSeries(SeriesDefinition series) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t id = catalog_.DefineSeries(std::move(series));
  if (id != 0 && open_ != nullptr && !IsForkedChild()) open_->AddSeriesLocked(id);
  return id;
}

ThreadRecorder* Runtime::StartThread(ThreadSlot& slot, std::uint32_t generation) {
  if (IsForkedChild()) {
    if (!JoinParent(generation)) {
      CountLost();
      return nullptr;
    }
    generation = CurrentGeneration(generation);
  }
  if (slot.recorder != nullptr) {
    slot.recorder->process().EndThread(slot.recorder);
    DropWritersThatAreOver();
  }
  slot = {nullptr, 0};
  // At once: what comes next may run out of memory.
  pthread_setspecific(thread_key_, nullptr);
  ThreadRecorder* recorder = nullptr;
  bool is_late = false;
  {
    const std::lock_guard lock(mutex_);
    // Opened or closed since the caller looked.
    is_late = open_ == nullptr || open_->generation() != generation;
    if (!is_late) {
      recorder = open_->StartThreadLocked(++thread_serial_);
      // In the same hold of the lock: a close that comes now waits for this call.
      recorder->Enter();
    }
  }
  pthread_setspecific(thread_key_, recorder);
  if (is_late) {
    CountLate(generation);
    return nullptr;
  }
  slot.generation = generation;
  slot.recorder = recorder;
  return recorder;
}

void Runtime::CountLate(std::uint32_t generation) {
  const std::lock_guard lock(mutex_);
  if (IsForkedChild() || writers_.empty()) return;
  // Switched off since that call looked: nobody wanted it.
  if (page_->word.load() == 0) return;
  if (writers_.back()->generation() == generation) writers_.back()->CountNoRing();
}

// A child may have opened a writer of its own on the way.
std::uint32_t Runtime::CurrentGeneration(std::uint32_t otherwise) {
  const std::lock_guard lock(mutex_);
  return open_ == nullptr ? otherwise : open_->generation();
}

void Runtime::CountLost() {
  const std::lock_guard lock(mutex_);
  if (IsForkedChild() && open_ != nullptr) open_->CountNoRing();
}

void Runtime::EndThread(void* recorder) {
  thread_slot = {};
  // In a forked child the rings are the parent's.
  if (Get().IsForkedChild()) return;
  auto* ended = static_cast<ThreadRecorder*>(recorder);
  ended->process().EndThread(ended);
  Get().DropWritersThatAreOver();
}

}  // namespace stepwell::recorder
