// The C ABI: checks what comes from outside, finds the calling thread's recorder, lets nothing out.
#include "client/recorder/include/stepwell/recorder.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "client/recorder/src/exit_wait.h"
#include "client/recorder/src/runtime.h"
#include "client/recorder/src/thread_slot.h"

namespace stepwell::recorder {

thread_local constinit ThreadSlot thread_slot{nullptr, 0};

namespace {

constexpr std::size_t kOptionBytesMax = 1024;

// An option's text, cleaned of what JSON and the wire do not carry; too long is cut.
std::string OptionText(const char* text) {
  std::string_view view = text == nullptr ? std::string_view() : std::string_view(text);
  std::string cleaned(view.substr(0, kOptionBytesMax));
  while (!cleaned.empty() && view.size() > kOptionBytesMax && !IsUtf8(cleaned)) cleaned.pop_back();
  if (!IsUtf8(cleaned)) {
    std::replace_if(
        cleaned.begin(), cleaned.end(), [](char c) { return (c & 0x80) != 0; }, '?');
  }
  return cleaned;
}

// False where one has no name or value, or two have one name.
bool TakeLabels(std::span<const stepwell_label> given, std::map<std::string, std::string>& labels) {
  return std::all_of(given.begin(), given.end(), [&](const stepwell_label& label) {
    return label.name != nullptr && label.value != nullptr &&
           labels.emplace(label.name, label.value).second;
  });
}

SamplingWish SamplingOf(const stepwell_options& options) {
  SamplingWish wish;
  wish.is_on = options.system_metrics != 0;
  wish.interval_us = options.interval_us;
  wish.groups = SplitWords(OptionText(options.groups));
  wish.without = SplitWords(OptionText(options.without));
  wish.with = SplitWords(OptionText(options.with));
  return wish;
}

Identity IdentityOf(const stepwell_options& options) {
  Identity wishes;
  wishes.server = OptionText(options.server);
  wishes.project = OptionText(options.project);
  wishes.trial = OptionText(options.trial);
  wishes.attempt_key = OptionText(options.attempt_key);
  wishes.token = OptionText(options.token);
  wishes.rank = options.rank;
  wishes.world_size = options.world_size;
  const std::size_t count = options.labels == nullptr ? 0 : options.label_count;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = OptionText(options.labels[i].name);
    if (name.empty() || name == "rank" || name == "agent") continue;
    if (wishes.labels.size() == spool::kWriterLabelCountMax) break;
    wishes.labels[name] = OptionText(options.labels[i].value);
  }
  wishes.sampling = SamplingOf(options);
  return wishes;
}

// Paths, as they are.
OpenWishes WishesOf(const stepwell_options& options) {
  const auto path = [](const char* text) { return std::string(text == nullptr ? "" : text); };
  return {.identity = IdentityOf(options),
          .spool_dir = path(options.spool_dir),
          .agent = path(options.agent),
          .starts_agent = options.start_agent != 0,
          .variables = options.environment};
}

// What a caller's struct lacks keeps its default.
stepwell_options Defaults(std::size_t size) {
  stepwell_options options{};
  options.size = size;
  options.rank = -1;
  options.world_size = -1;
  options.start_agent = 1;
  options.system_metrics = 1;
  return options;
}

// A call that finds its writer closed is counted where a call of the same thread would have landed.
[[gnu::cold]] void CountLate(std::uint32_t word) {
  const ThreadSlot& slot = thread_slot;
  if (slot.recorder != nullptr && slot.generation == Gate::Generation(word)) {
    slot.recorder->CountLate();
  }
}

// Not inlined: what a thread does once lies apart from what it does at each call. The gate is shut to it, or
// open for another writer than the thread's.
[[gnu::cold, gnu::noinline]] ThreadRecorder* EnterAnew(std::uint32_t wanted_bit,
                                                       std::uint32_t word) {
  if ((word & wanted_bit) != 0) {
    return Runtime::Get().StartThread(thread_slot, Gate::Generation(word));
  }
  if (Gate::IsShut(word)) CountLate(word);
  return nullptr;
}

// Of a thread that records nothing yet.
[[gnu::cold, gnu::noinline]] ThreadRecorder* EnterFirst(std::uint32_t wanted_bit) {
  const std::uint32_t* gate = __atomic_load_n(&stepwell_gate, __ATOMIC_RELAXED);
  return EnterAnew(wanted_bit, __atomic_load_n(gate, __ATOMIC_ACQUIRE));
}

// The calling thread's recorder, entered; Leave must follow. Null while nothing is recorded: not
// open, switched off, or no memory for this thread.
// The gate is reached through the thread's recorder, which is read in any case.
inline ThreadRecorder* EnterThread(std::uint32_t wanted_bit) {
  ThreadRecorder* thread = thread_slot.recorder;
  if (thread == nullptr) [[unlikely]] {
    return EnterFirst(wanted_bit);
  }
  const std::uint32_t word = thread->gate().load(std::memory_order_acquire);
  if ((word & wanted_bit) == 0 || Gate::Generation(word) != thread->generation()) [[unlikely]] {
    return EnterAnew(wanted_bit, word);
  }
  thread->Enter();
  const std::uint32_t now = thread->gate().load(std::memory_order_relaxed);
  if ((now | Gate::kOn) == (word | Gate::kOn)) [[likely]] {
    return thread;
  }
  thread->Leave();
  CountLate(now);
  return nullptr;
}

// Runs `call`, answering `otherwise` where memory ran out: nothing is thrown into the trial.
template <typename Call, typename Result>
Result Guarded(Result otherwise, Call call) noexcept {
  try {
    return call();
  } catch (...) {
    return otherwise;
  }
}

stepwell_closing* BeginClose(LateCalls late) {
  return Guarded(static_cast<stepwell_closing*>(nullptr), [late] {
    return reinterpret_cast<stepwell_closing*>(Runtime::Get().BeginClose(late).release());
  });
}

template <typename Call>
void Recording(std::uint32_t wanted_bit, Call call) noexcept {
  ThreadRecorder* thread = nullptr;
  try {
    thread = EnterThread(wanted_bit);
    if (thread != nullptr) call(*thread);
  } catch (...) {
    // Out of memory at a first use: not recorded.
  }
  if (thread != nullptr) thread->Leave();
}

}  // namespace
}  // namespace stepwell::recorder

using namespace stepwell::recorder;  // NOLINT: this file is the C face of that namespace
namespace spool = stepwell::spool;

extern "C" {

void stepwell_options_init_size(stepwell_options* options, size_t size) {
  if (options == nullptr || size < sizeof(size_t)) return;
  const stepwell_options defaults = Defaults(size);
  // The caller may have been built against an older header, or a newer one.
  std::memset(options, 0, size);
  std::memcpy(options, &defaults, std::min(size, sizeof(defaults)));
}

stepwell_state stepwell_open(const stepwell_options* options) {
  return Guarded(STEPWELL_CLOSED, [options] {
    stepwell_options given = Defaults(sizeof(given));
    if (options != nullptr) {
      std::memcpy(&given, options, std::min(options->size, sizeof(given)));
    }
    return Runtime::Get().Open(WishesOf(given));
  });
}

stepwell_state stepwell_current_state() {
  return Guarded(STEPWELL_CLOSED, [] { return Runtime::Get().state(); });
}

const char* stepwell_message() {
  return Guarded("", [] { return Runtime::Get().message(); });
}

int stepwell_close(int64_t timeout_ms) {
  return Guarded(0, [timeout_ms] { return Runtime::Get().Close(timeout_ms) ? 1 : 0; });
}

stepwell_closing* stepwell_close_begin() { return BeginClose(LateCalls::kCount); }

stepwell_closing* stepwell_switch_off_begin() { return BeginClose(LateCalls::kPassOver); }

int stepwell_close_await(stepwell_closing* closing, int64_t timeout_ms) {
  if (closing == nullptr) return -1;
  return Guarded(-1, [=] {
    switch (reinterpret_cast<Closing*>(closing)->Await(timeout_ms)) {
      case ProcessWriter::Ack::kStored:
        return 1;
      case ProcessWriter::Ack::kNotYet:
        return 0;
      case ProcessWriter::Ack::kNever:
        break;
    }
    return -1;
  });
}

void stepwell_close_ease(stepwell_closing* closing) {
  if (closing == nullptr) return;
  (void)Guarded(0, [=] {
    reinterpret_cast<Closing*>(closing)->Ease();
    return 0;
  });
}

void stepwell_close_end(stepwell_closing* closing) {
  (void)Guarded(0, [=] {
    delete reinterpret_cast<Closing*>(closing);
    return 0;
  });
}

int64_t stepwell_exit_wait_ms() {
  return Guarded(std::int64_t{0},
                 [] { return ReadExitWaitMs([](const char* name) { return std::getenv(name); }); });
}

uint64_t stepwell_dropped_count() {
  return Guarded(std::uint64_t{0}, [] { return Runtime::Get().dropped_count(); });
}

int stepwell_upload_trace(const char* path, int32_t epoch, int32_t first_batch, int32_t last_batch,
                          int removes_file) {
  if (path == nullptr) return 0;
  return Guarded(0, [=] {
    return Runtime::Get().UploadTrace({.path = path,
                                       .epoch = epoch,
                                       .first_batch = first_batch,
                                       .last_batch = last_batch,
                                       .removes_file = removes_file != 0})
               ? 1
               : 0;
  });
}

void stepwell_offer_capture(int is_offered) {
  (void)Guarded(0, [=] {
    Runtime::Get().OfferCapture(is_offered != 0);
    return 0;
  });
}

uint32_t stepwell_capture_wanted(int32_t* first_batch, int32_t* step_count) {
  return Guarded(std::uint32_t{0}, [=] {
    const CaptureWish wish = Runtime::Get().WantedCapture();
    *first_batch = wish.first_batch;
    *step_count = wish.step_count;
    return wish.request;
  });
}

void stepwell_capture_answer(uint32_t request, uint32_t outcome, uint32_t step_count) {
  (void)Guarded(0, [=] {
    Runtime::Get().AnswerCapture(request, outcome, step_count);
    return 0;
  });
}

stepwell_scope_id stepwell_define_scope(const char* name) {
  return stepwell_define_labelled_scope(name, nullptr, 0);
}

stepwell_scope_id stepwell_define_labelled_scope(const char* name, const stepwell_label* labels,
                                                 size_t label_count) {
  if (name == nullptr) return 0;
  if (label_count > spool::kLabelCountMax || (labels == nullptr && label_count > 0)) return 0;
  return Guarded(std::uint32_t{0}, [=]() -> std::uint32_t {
    ScopeDefinition scope{.name = name};
    if (!TakeLabels(std::span(labels, label_count), scope.labels)) return 0;
    return Runtime::Get().DefineScope(std::move(scope));
  });
}

stepwell_series_id stepwell_define_series(const char* group, const char* name, const char* unit,
                                          stepwell_series_kind kind, const stepwell_label* labels,
                                          size_t label_count) {
  if (group == nullptr || name == nullptr) return 0;
  if (kind != STEPWELL_GAUGE && kind != STEPWELL_COUNTER && kind != STEPWELL_DURATION) return 0;
  if (label_count > spool::kLabelCountMax || (labels == nullptr && label_count > 0)) return 0;
  return Guarded(std::uint32_t{0}, [=]() -> std::uint32_t {
    SeriesDefinition series{.group = group,
                            .name = name,
                            .unit = unit == nullptr ? "" : unit,
                            .kind = static_cast<spool::SeriesKind>(kind),
                            .labels = {}};
    if (!TakeLabels(std::span(labels, label_count), series.labels)) return 0;
    return Runtime::Get().DefineSeries(std::move(series));
  });
}

// The hot ones of this library follow each other, some 2 KB: from here on they are on one page.
[[gnu::hot, gnu::aligned(4096)]] void stepwell_scope_begin(stepwell_scope* scope,
                                                           stepwell_scope_id name) {
  scope->path = spool::kNoName;
  if (name == 0) return;
  Recording(Gate::kOn, [=](ThreadRecorder& thread) { thread.BeginScope(*scope, name); });
}

void stepwell_scope_begin_apart(stepwell_scope* scope, stepwell_scope_id name) {
  scope->path = spool::kNoName;
  if (name == 0) return;
  Recording(Gate::kOn, [=](ThreadRecorder& thread) { thread.BeginScopeApart(*scope, name); });
}

[[gnu::hot]] uint64_t stepwell_scope_end(stepwell_scope* scope) {
  if (scope->path == spool::kNoName) return 0;
  std::uint64_t took_ns = 0;
  // Asked of the open gate: a scope that began while recording was on is recorded.
  Recording(Gate::kOpen, [&](ThreadRecorder& thread) { took_ns = thread.EndScope(*scope); });
  scope->path = spool::kNoName;
  return took_ns;
}

[[gnu::hot]] void stepwell_record(stepwell_series_id series, double value) {
  if (series == 0) return;
  Recording(Gate::kOn, [=](ThreadRecorder& thread) { thread.Record(series, value); });
}

void stepwell_record_at(stepwell_series_id series, int32_t batch, int64_t start_time_us,
                        double value) {
  if (series == 0) return;
  Recording(Gate::kOn,
            [=](ThreadRecorder& thread) { thread.RecordAt(series, batch, start_time_us, value); });
}

void stepwell_instant(stepwell_scope_id name) {
  if (name == 0) return;
  Recording(Gate::kOn, [=](ThreadRecorder& thread) { thread.AddInstant(name); });
}

void stepwell_step_begin() {
  Recording(Gate::kOpen, [](ThreadRecorder& thread) { thread.BeginStep(); });
}

[[gnu::hot]] void stepwell_step_end(int32_t batch) {
  Recording(Gate::kOpen, [batch](ThreadRecorder& thread) { thread.EndStep(batch); });
}

void stepwell_step_leave() {
  Recording(Gate::kOpen, [](ThreadRecorder& thread) { thread.LeaveStep(); });
}

[[gnu::hot]] uint32_t stepwell_scope_path() {
  std::uint32_t path = spool::kNoName;
  Recording(Gate::kOn, [&](ThreadRecorder& thread) { path = thread.path(); });
  return path;
}

[[gnu::hot]] stepwell_scope_id stepwell_innermost_scope() {
  stepwell_scope_id scope = 0;
  Recording(Gate::kOn, [&](ThreadRecorder& thread) { scope = thread.InnermostScope(); });
  return scope;
}

}  // extern "C"
