// A process that records as a training does, over the recorder alone, and logs each sample that it
// recorded in a ledger of its own. Runs until --steps or SIGTERM, then closes and logs what the
// recorder said; with --die-at it kills itself in the middle of that step. With --scopes 0 it records
// without steps and scopes, so that each event of the recorder is one sample. With --workers N it
// forks N workers after its first step, each of which records a series of its own at the same rate
// into a ledger of its own (the log's name, "-w", its number) and leaves by _exit: at the end, or after
// --worker-samples. With --log-ahead 1 it writes what it is about to record before it does, and
// afterwards that it did: one that somebody kills is asked for all that it had recorded. With --leave-open 1 it exits without closing. Its writer brings the token in TRAINER_TOKEN.
//
// With --held 1 the thread that trains is held by the kernel: it may sleep until its next step and write
// to its ledger, and any other system call in a step ends the process with exit code 90 and the call's
// number on stderr. What does not ask the kernel waits for nobody. Beside it, where --disturb says so
// (a sum of 1 forks that leave at once, 2 forks that execute, 4 signals, 8 all descriptors used up), the
// main thread does what programs do. With --ask-at N the training itself asks the kernel in step N; with --late-pages N it
// waits in each of its steps for a page of memory that comes late, until it had N of them.
//
// Exit code: 0 all is acked, 3 close() could not say so, 4 the recorder does not record. With
// --own-exit CODE it is a trial that knows nothing of recorders: it says how it trains, on stdout and
// stderr, nothing else, and ends with that code.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "stepwell/stepwell.h"
#include "tests/faults/checker/ledger.h"
#include "tests/faults/programs/disturbance.h"
#include "tests/faults/programs/held_thread.h"
#include "tests/faults/programs/late_pages.h"
#include "tests/faults/programs/narrow_place.h"
#include "tests/faults/programs/options.h"

namespace stepwell::faults {
namespace {

using std::chrono::steady_clock;

constexpr int kCheckedPerStep = 4;
constexpr int kNumberedPerStep = 2;

volatile sig_atomic_t g_stop = 0;

std::int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Of its writer; "" = none.
std::string OwnToken() {
  const char* text = std::getenv("TRAINER_TOKEN");
  return text == nullptr ? "" : text;
}

class Trainer {
 public:
  explicit Trainer(const ProgramOptions& options)
      : rank_(static_cast<int>(options.Number("--rank"))),
        seed_(static_cast<std::uint64_t>(options.Number("--seed"))),
        scopes_(options.Number("--scopes") != 0),
        interval_(std::chrono::microseconds(1'000'000 / options.Number("--rate"))),
        worker_count_(static_cast<int>(options.Number("--workers"))),
        worker_sample_count_(options.Number("--worker-samples")),
        own_exit_(static_cast<int>(options.Number("--own-exit"))),
        ask_at_(options.Number("--ask-at")),
        late_page_count_(static_cast<std::size_t>(options.Number("--late-pages"))),
        logs_ahead_(options.Number("--log-ahead") != 0),
        log_path_(options.Text("--log")),
        log_(OpenLog(log_path_)),
        recorder_({.spool_dir = options.Text("--spool-dir"),
                   .trial = options.Text("--trial"),
                   .attempt_key = "one",
                   .token = OwnToken(),
                   .rank = rank_,
                   .world_size = static_cast<std::int32_t>(options.Number("--world-size")),
                   .exit_wait = std::chrono::milliseconds(0)}),
        checked_("faults", "checked"),
        numbered_("faults", "numbered") {}

  bool records() const { return recorder_.state() == STEPWELL_RECORDING; }
  std::string message() const { return recorder_.message(); }
  bool is_plain() const { return own_exit_ >= 0; }
  int own_exit() const { return own_exit_; }

  void Run(std::int64_t step_count, std::int64_t die_at) {
    LogDone();
    if (scopes_) recorder_.StepBegin();
    auto due = steady_clock::now();
    for (std::int32_t step = 0; step < step_count && g_stop == 0; ++step) {
      const std::int64_t start_us = NowUs();
      const auto begin = steady_clock::now();
      if (scopes_) {
        STEPWELL_SCOPE("train_batch");
        { STEPWELL_SCOPE("forward"); }
        { STEPWELL_SCOPE("forward"); }
      }
      if (step == ask_at_) (void)syscall(SYS_getpid);
      if (late_page_next_ < late_page_count_ && is_warm_) late_pages_->Touch(late_page_next_++);
      const bool dies = step == die_at;
      RecordSamples(start_us, dies || !scopes_ ? -1 : step);
      if (dies) Die(start_us);
      if (scopes_) recorder_.StepEnd(step);
      slowest_ = std::max(slowest_, steady_clock::now() - begin);
      if (scopes_) LogScopes(start_us, step);
      LogDone();
      Write();
      if (is_plain()) Say(step);
      if (step == 0) Warm();
      due = std::max(due + interval_, steady_clock::now() - std::chrono::seconds(1));
      SleepUntil(due);
    }
    if (!is_held_) StopWorkers();
  }

  // The same on a thread that the kernel holds, from its second step on. It is not joined: its end would
  // be system calls.
  void RunHeld(std::int64_t step_count, std::int64_t disturbances) {
    is_held_ = true;
    pending_.reserve(1 << 16);
    if (late_page_count_ > 0) late_pages_ = std::make_unique<LatePages>(late_page_count_);
    std::thread([this, step_count] {
      Run(step_count, -1);
      is_done_ = true;
      while (true) SleepUntil(steady_clock::now() + std::chrono::seconds(1));
    }).detach();
    Disturbance disturbance(disturbances);
    while (!is_done_) {
      if (is_warm_) disturbance.Again();
      if (const std::string message = recorder_.message(); !message.empty()) heard_ = message;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    StopWorkers();
    std::printf("trainer rank %d: held, %s\n", rank_, disturbance.ToText().c_str());
    if (!heard_.empty()) std::printf("trainer rank %d: heard %s\n", rank_, heard_.c_str());
    const HeldWaits waits = ReadHeldWaits();
    std::printf("trainer rank %d: %lld switches, %lld sleeps\n", rank_,
                static_cast<long long>(waits.switch_count),
                static_cast<long long>(waits.sleep_count));
    std::fflush(stdout);
  }

  // As a program that knows nothing of closing: exit destroys no local object.
  [[noreturn]] void LeaveOpen() {
    pending_ = "dropped " + std::to_string(recorder_.dropped_count()) + "\n";
    Write();
    std::exit(is_plain() ? own_exit_ : 0);
  }

  // Whether the master holds all of it.
  bool Close(std::chrono::milliseconds wait) {
    const bool acked = recorder_.Close(wait);
    pending_ = "dropped " + std::to_string(recorder_.dropped_count()) + "\n";
    if (acked) pending_ = "ack " + std::to_string(line_count_) + "\n" + pending_;
    Write();
    if (is_plain()) return acked;
    std::printf("trainer rank %d: %lld samples, %llu events dropped, slowest step %.3f ms, %s\n",
                rank_, static_cast<long long>(line_count_),
                static_cast<unsigned long long>(recorder_.dropped_count()),
                std::chrono::duration<double, std::milli>(slowest_).count(),
                acked ? "acked" : "not known to be acked");
    return acked;
  }

 private:
  // The same in each run: no time, no process.
  void Say(std::int32_t step) const {
    if (step % 50 == 0) {
      std::printf("rank %d step %d loss %.6f\n", rank_, step, 1 / (1 + 0.01 * step));
      std::fflush(stdout);
    }
    if (step % 200 == 0) std::fprintf(stderr, "rank %d: a warning at step %d\n", rank_, step);
  }

  static int OpenLog(const std::string& path) {
    const int log = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct stat about {};
    // Nobody is to wait for who reads a pipe.
    if (fstat(log, &about) == 0 && S_ISFIFO(about.st_mode) &&
        fcntl(log, F_SETPIPE_SZ, 1 << 20) < 0) {
      std::_Exit(77);
    }
    return log;
  }

  // After the first step: what first uses cost is behind.
  void Warm() {
    StartWorkers();
    if (is_held_) HoldThisThread(log_);
    is_warm_ = true;
  }

  void StartWorkers() {
    if (worker_count_ == 0) return;
    std::fflush(nullptr);
    for (int i = 0; i < worker_count_; ++i) {
      const pid_t child = fork();
      if (child == 0) RunWorker(i);
      if (child > 0) workers_.push_back(child);
    }
  }

  void StopWorkers() {
    for (const pid_t worker : workers_) kill(worker, SIGTERM);
    for (const pid_t worker : workers_) waitpid(worker, nullptr, 0);
  }

  // As a loader's worker process: nothing is opened, nothing is closed.
  [[noreturn]] void RunWorker(int number) {
    const int log = OpenLog(log_path_ + "-w" + std::to_string(number));
    const std::string name = "worker_" + std::to_string(number);
    const Series series("faults", name.c_str());
    const pid_t parent = getppid();
    auto due = steady_clock::now();
    std::int64_t time_us = 0;
    for (std::int32_t i = 0; g_stop == 0 && getppid() == parent && i < worker_sample_count_; ++i) {
      const double value = ValueOf(seed_ + 1 + static_cast<std::uint64_t>(number), rank_, i);
      time_us = std::max(time_us + 1, NowUs());
      stepwell_record_at(series.id(), i, time_us, value);
      const std::string line = SampleLine(
          {"faults/" + name, rank_, i, i, true, time_us, std::bit_cast<std::uint64_t>(value)});
      if (write(log, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(74);
      due = std::max(due + interval_, steady_clock::now() - std::chrono::seconds(1));
      std::this_thread::sleep_until(due);
    }
    const std::string last = "dropped " + std::to_string(recorder_.dropped_count()) + "\n";
    if (write(log, last.data(), last.size()) != static_cast<ssize_t>(last.size())) _exit(74);
    _exit(0);
  }

  // `batch` of the numbered ones: -1 when the step will never end.
  void RecordSamples(std::int64_t start_us, std::int32_t batch) {
    for (int i = 0; i < kNumberedPerStep; ++i) {
      Log({kNumberedSeries, rank_, numbered_count_ + i, batch, false, start_us,
           std::bit_cast<std::uint64_t>(static_cast<double>(numbered_count_ + i))});
    }
    std::array<std::int64_t, kCheckedPerStep> times_us{};
    for (int i = 0; i < kCheckedPerStep; ++i) {
      const std::int64_t number = checked_count_ + i;
      // Those of a clock that was set ahead, and is right again, are left behind.
      const std::int64_t now_us = NowUs();
      const bool is_ahead = checked_us_ > now_us + 1'000'000;
      checked_us_ = is_ahead ? now_us : std::max(checked_us_ + 1, now_us);
      times_us[static_cast<std::size_t>(i)] = checked_us_;
      Log({"faults/checked", rank_, number, static_cast<std::int32_t>(number), true, checked_us_,
           std::bit_cast<std::uint64_t>(ValueOf(seed_, rank_, number))});
    }
    if (logs_ahead_) Write();
    for (int i = 0; i < kNumberedPerStep; ++i, ++numbered_count_) {
      recorder_.Record(numbered_, static_cast<double>(numbered_count_));
    }
    for (const std::int64_t time_us : times_us) {
      stepwell_record_at(checked_.id(), static_cast<std::int32_t>(checked_count_), time_us,
                         ValueOf(seed_, rank_, checked_count_));
      ++checked_count_;
    }
  }

  // Of all lines so far.
  void LogDone() {
    if (logs_ahead_) pending_ += "done " + std::to_string(line_count_) + "\n";
  }

  void LogScopes(std::int64_t start_us, std::int32_t step) {
    const auto two = std::bit_cast<std::uint64_t>(2.0);
    Log({"timing/step", rank_, step, step, false, start_us, std::nullopt});
    Log({"timing/train_batch", rank_, step, step, false, start_us, std::nullopt});
    Log({"timing/train_batch/forward", rank_, step, step, false, start_us, std::nullopt});
    Log({"timing/train_batch/forward.count", rank_, step, step, false, start_us, two});
  }

  // Scopes of a step without an end lie outside any step: one sample each time, without batch.
  [[noreturn]] void Die(std::int64_t start_us) {
    Log({"timing/train_batch", rank_, -1, -1, false, start_us, std::nullopt});
    Log({"timing/train_batch/forward", rank_, -1, -1, false, start_us, std::nullopt});
    Log({"timing/train_batch/forward", rank_, -1, -1, false, start_us, std::nullopt});
    pending_ += "dropped " + std::to_string(recorder_.dropped_count()) + "\n";
    Write();
    kill(getpid(), SIGKILL);
    std::abort();
  }

  void Log(const LoggedSample& sample) {
    pending_ += SampleLine(sample);
    ++line_count_;
  }

  void Write() {
    if (write(log_, pending_.data(), pending_.size()) != static_cast<ssize_t>(pending_.size())) {
      std::perror("trainer: ledger");
      std::_Exit(74);
    }
    pending_.clear();
  }

  const int rank_;
  const std::uint64_t seed_;
  const bool scopes_;
  const steady_clock::duration interval_;
  const int worker_count_;
  const std::int64_t worker_sample_count_;
  const int own_exit_;  // -1 = none
  const std::int64_t ask_at_;
  const std::size_t late_page_count_;
  const bool logs_ahead_;
  const std::string log_path_;
  const int log_;
  Recorder recorder_;
  const Series checked_;
  const Series numbered_;
  std::int64_t checked_count_ = 0;
  std::int64_t numbered_count_ = 0;
  std::int64_t line_count_ = 0;
  std::int64_t checked_us_ = 0;
  steady_clock::duration slowest_ = {};
  std::string pending_;
  std::vector<pid_t> workers_;
  bool is_held_ = false;  // set before the held thread begins
  std::string heard_;     // the recorder's last message
  std::unique_ptr<LatePages> late_pages_;
  std::size_t late_page_next_ = 0;
  std::atomic<bool> is_warm_{false};
  std::atomic<bool> is_done_{false};
};

int Main(int argc, char** argv) {
  const ProgramOptions options(argc, argv, {{"--spool-dir", ""},    {"--trial", "faults"},
                                            {"--log", ""},          {"--rank", "0"},
                                            {"--world-size", "1"},  {"--seed", "1"},
                                            {"--scopes", "1"},      {"--rate", "50"},
                                            {"--workers", "0"},     {"--worker-samples", "1000000"},
                                            {"--own-exit", "-1"},   {"--steps", "1000000"},
                                            {"--die-at", "-1"},     {"--leave-open", "0"},
                                            {"--held", "0"},        {"--ask-at", "-1"},
                                            {"--late-pages", "0"},  {"--log-ahead", "0"},
                                            {"--disturb", "0"},     {"--close-wait-ms", "60000"},
                                            {"--agent", ""},        {"--files-max", "0"},
                                            {"--no-processes", "0"}});
  signal(SIGTERM, [](int) { g_stop = 1; });
  // Tests' children start none by themselves.
  if (const std::string agent = options.Text("--agent"); !agent.empty()) {
    setenv("STEPWELL_AGENT", agent.c_str(), 1);
  }
  LimitFiles(options.Number("--files-max"));
  if (options.Number("--no-processes") != 0) ForbidProcesses();
  Trainer trainer(options);
  if (!trainer.records() && !trainer.is_plain()) {
    std::printf("trainer: does not record: %s\n", trainer.message().c_str());
  }
  if (options.Number("--held") != 0) {
    trainer.RunHeld(options.Number("--steps"), options.Number("--disturb"));
  } else {
    trainer.Run(options.Number("--steps"), options.Number("--die-at"));
  }
  if (options.Number("--leave-open") != 0) trainer.LeaveOpen();
  const bool acked = trainer.Close(std::chrono::milliseconds(options.Number("--close-wait-ms")));
  if (trainer.is_plain()) return trainer.own_exit();
  if (!trainer.records()) return 4;
  return acked ? 0 : 3;
}

}  // namespace
}  // namespace stepwell::faults

int main(int argc, char** argv) { return stepwell::faults::Main(argc, argv); }
