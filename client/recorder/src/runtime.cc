#include "client/recorder/src/runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "client/recorder/src/file_room.h"
#include "client/recorder/src/monotonic.h"
#include "client/recorder/src/thread_slot.h"

namespace {

// What everybody sees before the first open.
constinit const std::uint32_t kClosedGate = 0;

}  // namespace

const std::uint32_t* stepwell_gate = &kClosedGate;

namespace stepwell::recorder {
namespace {

bool IsDisabled() {
  const char* value = std::getenv("STEPWELL_DISABLED");
  return value != nullptr && *value != '\0' && std::strcmp(value, "0") != 0;
}

}  // namespace

Runtime& Runtime::Get() {
  static Runtime* runtime = new Runtime;
  return *runtime;
}

Runtime::Runtime() {
  MakePage();
  pthread_key_create(&thread_key_, &Runtime::EndThread);
  // A lock that another thread held at the fork would stay locked in the child for ever.
  pthread_atfork([] { Get().mutex_.lock(); }, [] { Get().mutex_.unlock(); }, &AfterForkInChild);
}

void Runtime::MakePage() {
  void* mapped = MapPrivate(spool::kPageBytes);
  // Without the page there is no gate to open: Open stays closed.
  static_assert(sizeof(Page) <= spool::kPageBytes);
  static Page spare;
  if (mapped != nullptr) madvise(mapped, spool::kPageBytes, MADV_WIPEONFORK);
  page_ = mapped == nullptr ? &spare : new (mapped) Page;
  page_->gate.store(0);
  page_->is_own.store(1);
}

void Runtime::AfterForkInChild() {
  Runtime& runtime = Get();
  // The kernel has done this already, unless it is older than MADV_WIPEONFORK (4.14).
  runtime.page_->gate.store(0);
  runtime.page_->is_own.store(0);
  runtime.mutex_.unlock();
  // Not taken before the fork, for it is held while a close waits; the child's starts unlocked.
  new (&runtime.opening_) std::mutex;
}

void Runtime::ForgetParentLocked() {
  // Its files, lock and threads are the parent's. The memory stays: destructors would write there.
  for (auto& writer : writers_) (void)writer.release();
  writers_.clear();
  open_ = nullptr;
  state_ = STEPWELL_CLOSED;
  thread_slot = {};
  pthread_setspecific(thread_key_, nullptr);
  page_->is_own.store(1);
}

stepwell_state Runtime::Open(Identity wishes, std::string spool_dir) {
  const std::lock_guard opening(opening_);
  {
    const std::lock_guard lock(mutex_);
    if (IsForkedChild()) ForgetParentLocked();
    if (open_ != nullptr) return state_;
  }
  if (IsDisabled()) {
    const std::lock_guard lock(mutex_);
    message_ = "STEPWELL_DISABLED is set";
    return state_ = STEPWELL_DISABLED;
  }
  wishes.writer = NewUuid();
  wishes.boot_id = ReadBootId();
  wishes.pid = getpid();
  wishes.opened_time_us = static_cast<std::int64_t>(ReadClockNs(CLOCK_REALTIME) / 1000);
  wishes.opened_monotonic_ns = MonotonicNs();
  const Identity identity =
      ResolveIdentity(std::move(wishes), [](const char* name) { return std::getenv(name); });
  if (spool_dir.empty()) {
    if (const char* root = std::getenv("STEPWELL_SPOOL_DIR")) spool_dir = root;
  }
  std::string message;
  std::unique_ptr<SpoolWriter> spool = MakeSpoolWriter(identity, spool_dir, &message);
  if (spool == nullptr) return STEPWELL_CLOSED;

  const stepwell_state state = spool->is_memory_only() ? STEPWELL_MEMORY_ONLY : STEPWELL_RECORDING;
  auto writer = std::make_unique<ProcessWriter>(std::move(spool), catalog_, mutex_, page_->gate,
                                                ++generation_);
  writer->StartMaintenance();
  const std::lock_guard lock(mutex_);
  message_ = std::move(message);
  open_ = writers_.emplace_back(std::move(writer)).get();
  __atomic_store_n(&stepwell_gate, reinterpret_cast<const std::uint32_t*>(&page_->gate),
                   __ATOMIC_RELEASE);
  return state_ = state;
}

std::unique_ptr<SpoolWriter> Runtime::MakeSpoolWriter(const Identity& identity,
                                                      const std::string& root,
                                                      std::string* message) {
  if (root.empty()) {
    *message = "no spool directory: set STEPWELL_SPOOL_DIR or options.spool_dir";
  } else if (auto spool = SpoolWriter::Create(root, identity, message)) {
    return spool;
  }
  return SpoolWriter::CreateInMemory(identity);
}

bool Runtime::Close(std::int64_t timeout_ms) {
  const std::lock_guard opening(opening_);
  ProcessWriter* closing = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (IsForkedChild() || open_ == nullptr) return false;
    closing = std::exchange(open_, nullptr);
    state_ = STEPWELL_CLOSED;
    message_ = "closed";
  }
  return closing->Close(timeout_ms);
}

stepwell_state Runtime::state() {
  const std::lock_guard lock(mutex_);
  return IsForkedChild() ? STEPWELL_CLOSED : state_;
}

const char* Runtime::message() {
  const std::lock_guard lock(mutex_);
  return IsForkedChild() ? "a forked child records nothing before it opens" : message_.c_str();
}

std::uint64_t Runtime::dropped_count() {
  ProcessWriter* last = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (IsForkedChild() || writers_.empty()) return 0;
    last = writers_.back().get();
  }
  return last->dropped_count();
}

std::uint32_t Runtime::DefineScope(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return catalog_.DefineScope(name);
}

std::uint32_t Runtime::DefineSeries(SeriesDefinition series) {
  const std::lock_guard lock(mutex_);
  const std::uint32_t id = catalog_.DefineSeries(std::move(series));
  if (id != 0 && open_ != nullptr && !IsForkedChild()) open_->AddSeriesLocked(id);
  return id;
}

ThreadRecorder* Runtime::StartThread(ThreadSlot& slot, std::uint32_t generation) {
  ProcessWriter* writer = nullptr;
  std::uint32_t serial = 0;
  {
    const std::lock_guard lock(mutex_);
    // Opened or closed since the caller looked.
    if (open_ == nullptr || open_->generation() != generation) return nullptr;
    writer = open_;
    serial = ++thread_serial_;
  }
  if (slot.recorder != nullptr) slot.recorder->process().EndThread(slot.recorder);
  slot = {nullptr, generation};
  ThreadRecorder* recorder = writer->StartThread(serial);
  pthread_setspecific(thread_key_, recorder);
  slot.recorder = recorder;
  return recorder;
}

void Runtime::EndThread(void* recorder) {
  thread_slot = {};
  // In a forked child the rings are the parent's.
  if (Get().IsForkedChild()) return;
  auto* ended = static_cast<ThreadRecorder*>(recorder);
  ended->process().EndThread(ended);
}

}  // namespace stepwell::recorder
