// Stepwell's recorder for C++: thin, inline, over the C ABI of recorder.h, whose words on cost,
// threads and failure hold here too. C++17.
//
//   stepwell::Recorder recorder({.trial = "resnet50-a"});
//   const stepwell::Series loss("training", "loss", {.unit = "1"});
//   recorder.StepBegin();
//   for (const Batch& batch : loader) {
//     {
//       STEPWELL_SCOPE("train_batch");
//       { STEPWELL_SCOPE("forward"); ... }
//     }
//     stepwell::Record(loss, value);
//     recorder.StepEnd();
//   }
//   recorder.Close(std::chrono::seconds(5));  // or let it go out of scope
#ifndef STEPWELL_STEPWELL_H_
#define STEPWELL_STEPWELL_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stepwell/recorder.h"

namespace stepwell {

using Labels = std::vector<std::pair<std::string, std::string>>;

namespace internal {
inline std::vector<stepwell_label> AsLabels(const Labels& labels) {
  std::vector<stepwell_label> views;
  for (const auto& [name, value] : labels) views.push_back({name.c_str(), value.c_str()});
  return views;
}
}  // namespace internal

// The name of a scope. Make it once (STEPWELL_SCOPE does), at best with static storage.
class ScopeName {
 public:
  explicit ScopeName(const char* name) : id_(stepwell_define_scope(name)) {}
  ScopeName(const char* name, const Labels& labels) {
    const std::vector<stepwell_label> views = internal::AsLabels(labels);
    id_ = stepwell_define_labelled_scope(name, views.data(), views.size());
  }
  stepwell_scope_id id() const { return id_; }

 private:
  stepwell_scope_id id_ = 0;
};

namespace internal {
template <void (*begin)(stepwell_scope*, stepwell_scope_id)>
class TimedScope {
 public:
  explicit TimedScope(const ScopeName& name) {
    if (stepwell_enabled()) {
      begin(&scope_, name.id());
    } else {
      // The other fields are those of `begin`, and read only after it set a path.
      scope_.path = 0;  // NOLINT(clang-analyzer-optin.cplusplus.UninitializedObject)
    }
  }
  ~TimedScope() { (void)End(); }
  TimedScope(const TimedScope&) = delete;
  TimedScope& operator=(const TimedScope&) = delete;

  // Before its time, at most once. How long it took; 0 = not recorded.
  std::chrono::nanoseconds End() {
    if (scope_.path == 0) return std::chrono::nanoseconds(0);
    const std::uint64_t length_ns = stepwell_scope_end(&scope_);
    scope_.path = 0;
    return std::chrono::nanoseconds(length_ns);
  }

 private:
  stepwell_scope scope_;
};
}  // namespace internal

// Times itself from construction to destruction, on one thread; the innermost goes first.
using Scope = internal::TimedScope<&stepwell_scope_begin>;
// The same of what takes turns with others on a thread, as coroutines do: it lies in no other scope, none lies in
// it, and those that are open end in any order. On the thread that began it.
using ScopeApart = internal::TimedScope<&stepwell_scope_begin_apart>;

#define STEPWELL_JOIN_INNER(a, b) a##b
#define STEPWELL_JOIN(a, b) STEPWELL_JOIN_INNER(a, b)
// Times the rest of the enclosing block under `name`, a string literal.
#define STEPWELL_SCOPE(name)                                                              \
  static const ::stepwell::ScopeName STEPWELL_JOIN(stepwell_scope_name_, __LINE__)(name); \
  const ::stepwell::Scope STEPWELL_JOIN(stepwell_scope_,                                  \
                                        __LINE__)(STEPWELL_JOIN(stepwell_scope_name_, __LINE__))

// A moment of the calling thread, for traces.
inline void Instant(const ScopeName& name) {
  if (stepwell_enabled()) stepwell_instant(name.id());
}
// The same under `name`, a string literal.
#define STEPWELL_INSTANT(name)                                      \
  do {                                                              \
    static const ::stepwell::ScopeName stepwell_instant_name(name); \
    ::stepwell::Instant(stepwell_instant_name);                     \
  } while (false)

// What Record records under. Make it once.
class Series {
 public:
  struct Options {
    const char* unit = "";
    stepwell_series_kind kind = STEPWELL_GAUGE;
    Labels labels = {};
  };

  Series(const char* group, const char* name, const Options& options) {
    const std::vector<stepwell_label> labels = internal::AsLabels(options.labels);
    id_ = stepwell_define_series(group, name, options.unit, options.kind, labels.data(),
                                 labels.size());
  }
  Series(const char* group, const char* name) : Series(group, name, Options()) {}
  stepwell_series_id id() const { return id_; }

 private:
  stepwell_series_id id_ = 0;
};

inline void Record(const Series& series, double value) {
  if (stepwell_enabled()) stepwell_record(series.id(), value);
}
inline void RecordAt(const Series& series, std::int32_t batch,
                     std::chrono::system_clock::time_point start, double value) {
  const auto since =
      std::chrono::duration_cast<std::chrono::microseconds>(start.time_since_epoch());
  if (stepwell_enabled()) stepwell_record_at(series.id(), batch, since.count(), value);
}

struct Options {
  std::string spool_dir = {};  // every field: empty = as recorder.h says
  std::string server = {};
  std::string project = {};
  std::string trial = {};
  std::string attempt_key = {};
  std::string token = {};
  std::int32_t rank = -1;
  std::int32_t world_size = -1;
  Labels labels = {};
  // What the destructor waits for the last ack; negative = STEPWELL_EXIT_WAIT, or 5 s.
  std::chrono::milliseconds exit_wait = std::chrono::milliseconds(-1);
  std::string agent = {};
  bool start_agent = true;
  bool system_metrics = true;
  std::chrono::microseconds interval = {};
  std::string groups = {};
  std::string without = {};
  std::string with = {};
};

// A writer that is ending, for callers that do something else until all of it is stored. Any thread may ask.
class Closing {
 public:
  enum class Told { kStored, kNotYet, kNever };

  explicit Closing(stepwell_closing* closing) : closing_(closing) {}

  // False: none was open.
  explicit operator bool() const { return closing_ != nullptr; }
  // Waits at most `wait`. kNever = nobody will say, as in a child that was forked meanwhile.
  Told Await(std::chrono::milliseconds wait) {
    const int told = stepwell_close_await(closing_.get(), wait.count());
    return told > 0 ? Told::kStored : told == 0 ? Told::kNotYet : Told::kNever;
  }
  // For who keeps many: all but what Await needs is let go of.
  void Ease() { stepwell_close_ease(closing_.get()); }

 private:
  struct End {
    void operator()(stepwell_closing* closing) const { stepwell_close_end(closing); }
  };
  std::unique_ptr<stepwell_closing, End> closing_;
};

// Opens this process's writer and closes it at the end of its life. At most one at a time records;
// a second one shares the first one's writer and the first to go closes it.
class Recorder {
 public:
  explicit Recorder(const Options& options = Options())
      : exit_wait_(options.exit_wait.count() < 0
                       ? std::chrono::milliseconds(stepwell_exit_wait_ms())
                       : options.exit_wait) {
    const std::vector<stepwell_label> labels = internal::AsLabels(options.labels);
    const auto text = [](const std::string& given) {
      return given.empty() ? nullptr : given.c_str();
    };
    stepwell_options plain;
    stepwell_options_init(&plain);
    plain.spool_dir = text(options.spool_dir);
    plain.server = text(options.server);
    plain.project = text(options.project);
    plain.trial = text(options.trial);
    plain.attempt_key = text(options.attempt_key);
    plain.token = text(options.token);
    plain.rank = options.rank;
    plain.world_size = options.world_size;
    plain.labels = labels.data();
    plain.label_count = labels.size();
    plain.agent = text(options.agent);
    plain.start_agent = options.start_agent ? 1 : 0;
    plain.system_metrics = options.system_metrics ? 1 : 0;
    plain.interval_us = options.interval.count();
    plain.groups = text(options.groups);
    plain.without = text(options.without);
    plain.with = text(options.with);
    state_ = stepwell_open(&plain);
  }
  ~Recorder() { (void)Close(exit_wait_); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  stepwell_state state() const { return state_; }  // as it was at open
  // Why it is so, and what came since: see stepwell_message. Of a closed one: "closed".
  std::string message() const { return stepwell_message(); }

  void StepBegin() { stepwell_step_begin(); }
  void StepEnd(std::int32_t batch = STEPWELL_NEXT_BATCH) { stepwell_step_end(batch); }
  // What was recorded since the last StepEnd, and what comes next, lies outside any step.
  void StepLeave() { stepwell_step_leave(); }
  void Record(const Series& series, double value) { ::stepwell::Record(series, value); }

  // True = the master holds all of it. Waits at most `wait`.
  bool Close(std::chrono::milliseconds wait) { return stepwell_close(wait.count()) == 1; }
  // Ends the writer and waits for nothing; another may be opened at once.
  Closing CloseBegin() { return Closing(stepwell_close_begin()); }
  std::uint64_t dropped_count() const { return stepwell_dropped_count(); }

 private:
  std::chrono::milliseconds exit_wait_;
  stepwell_state state_ = STEPWELL_CLOSED;
};

}  // namespace stepwell

#endif  // STEPWELL_STEPWELL_H_
