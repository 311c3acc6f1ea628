// harm_bench: does a training notice that it is measured? The same step with and without scopes in turns
// within one process, the agent on another processor; the slowest calls beside an empty loop's slowest
// turns, with an agent, with one that is stopped while the rings are full, and without a spool; single calls
// that find the caches as a training leaves them, beside a read of the clock that does (alone: --cold); and
// the system calls that warm calls make, which strace(1) counts. --steps: the steps in turns alone.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/harm/call_tail.h"
#include "bench/harm/cold_calls.h"
#include "bench/harm/paired_steps.h"
#include "bench/harm/processor.h"
#include "bench/load/asked_options.h"
#include "stepwell/stepwell.h"

extern char** environ;

namespace {

using stepwell::bench::CallTail;
using stepwell::bench::ColdCalls;
using stepwell::bench::Interval;
using stepwell::bench::PairedSteps;
using stepwell::bench::StayOn;

constexpr int kTrainingProcessor = 0;
constexpr int kAgentProcessor = 1;
// A call that no program makes: strace shows where the counted ones begin and end.
constexpr int kMark = -4711;

// How long a step is, and of how many pairs of them.
struct Steps {
  std::chrono::milliseconds length;
  int pair_count;
};

struct Size {
  // As a training's on a GPU, of tens of milliseconds and longer, for which the promise is.
  Steps usual;
  // So short that a call's own cost shows in seconds of measuring: half a microsecond is 0.01 % of it.
  Steps briefest;
  int repeats;
  std::size_t calls;
  int cold_calls;
};

std::filesystem::path OwnPath() { return std::filesystem::read_symlink("/proc/self/exe"); }

pid_t Start(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  return failed == 0 ? child : 0;
}

bool EndsWell(pid_t child) {
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

// What serves the spool of this bench: an agent whose master does not answer, on the other processor.
class Agent {
 public:
  explicit Agent(const std::string& root) {
    const char* folder = std::getenv("STEPWELL_BIN");
    const std::string bin =
        folder != nullptr ? std::string(folder) : OwnPath().parent_path().string();
    const std::string program = bin + "/stepwell";
    StayOn(kAgentProcessor);
    child_ = Start({program, "agent", "--server", "127.0.0.1:9", "--spool-dir", root});
    StayOn(kTrainingProcessor);
  }
  ~Agent() {
    if (child_ == 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  void Stop() const { kill(child_, SIGSTOP); }

 private:
  pid_t child_ = 0;
};

stepwell::Options In(const std::string& root) {
  return {.spool_dir = root,
          .trial = "harm",
          .exit_wait = std::chrono::milliseconds(0),
          .start_agent = false};
}

bool IsRecording(const stepwell::Recorder& recorder) {
  if (recorder.state() == STEPWELL_RECORDING) return true;
  std::fprintf(stderr, "harm_bench: %s\n", recorder.message().c_str());
  return false;
}

void Call() {
  static const stepwell::Series kLoss("training", "loss");
  stepwell::Record(kLoss, 1.5);
}

void Print(const std::string& name, const std::string& text) {
  std::printf("{\"name\": \"harm.%s\", %s}\n", name.c_str(), text.c_str());
  std::fflush(stdout);
}

std::string Formatted(const char* format, double first, double second) {
  char text[128];
  std::snprintf(text, sizeof(text), format, first, second);
  return text;
}

// `clock`: of as many bare reads of the clock, which is what any measuring costs there and then; `nothing`: of
// pairs without a difference.
void PrintSlowdown(const std::string& name, const std::string& of, bool is_promised,
                   const Interval& percent, const Interval& clock, const Interval& nothing,
                   int pair_count) {
  Print(
      name,
      Formatted("\"value\": %.5f, \"spread\": [%.5f, ", percent.high, percent.low) +
          Formatted("%.5f], \"unit\": \"percent\", ", percent.high, 0) +
          Formatted("\"raw\": {\"ours\": %.5f, \"theirs\": %.5f}, ", percent.median, clock.median) +
          "\"against\": \"the same step without scopes, " + of +
          ": upper end of the median's 95 % confidence interval; raw: the median, and that of as "
          "many bare reads of the clock\", \"bar\": \"<= 0.05\", \"promised\": " +
          (is_promised ? "true" : "false") + ", \"n\": " + std::to_string(pair_count));
  std::fprintf(
      stderr,
      "harm.%s: %.5f %% [%.5f, %.5f], reads of the clock %.5f %% [%.5f, %.5f], nothing beside "
      "nothing %.5f %% [%.5f, %.5f]\n",
      name.c_str(), percent.median, percent.low, percent.high, clock.median, clock.low, clock.high,
      nothing.median, nothing.low, nothing.high);
}

void MeasureSteps(const std::string& name, const Steps& size, bool is_promised,
                  stepwell::Recorder& recorder) {
  PairedSteps steps(recorder, size.length);
  const PairedSteps::Result result = steps.Measure(size.pair_count, std::random_device()());
  PrintSlowdown(name, "by the clock on the wall", is_promised, result.scopes.wall,
                result.clock.wall, result.nothing.wall, size.pair_count);
  PrintSlowdown(name + "_cpu", "by the thread's processor time", is_promised, result.scopes.cpu,
                result.clock.cpu, result.nothing.cpu, size.pair_count);
  const auto more = static_cast<double>(result.switches_with - result.switches_without);
  Print(name + "_switches",
        Formatted("\"value\": %.0f, \"unit\": \"switches\", ", std::max(0.0, more), 0) +
            "\"against\": \"voluntary context switches of the same steps without "
            "scopes, subtracted\", \"bar\": \"<= 0\", \"promised\": true, \"n\": " +
            std::to_string(size.pair_count));
  std::fprintf(stderr, "harm.%s_switches: %lld with, %lld without\n", name.c_str(),
               static_cast<long long>(result.switches_with),
               static_cast<long long>(result.switches_without));
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void MeasureTail(const std::string& name, const std::string& when, const Size& size) {
  std::vector<double> calls, empty, warm, ratios;
  for (int i = 0; i < size.repeats; ++i) {
    const CallTail::Result tail = CallTail::Measure(size.calls, [] { Call(); });
    calls.push_back(tail.call_ns);
    empty.push_back(tail.empty_ns);
    warm.push_back(tail.warm_ns);
    ratios.push_back(tail.call_ns / tail.empty_ns);
  }
  std::fprintf(stderr,
               "harm.%s: %.0f ns beside %.0f; %.0f of calls that another one came right before\n",
               name.c_str(), Median(calls), Median(empty), Median(warm));
  Print(name,
        Formatted("\"value\": %.3f, \"raw\": {\"ours\": %.0f, ", Median(ratios), Median(calls)) +
            Formatted("\"theirs\": %.0f}, \"spread\": [%.3f, ", Median(empty),
                      *std::min_element(ratios.begin(), ratios.end())) +
            Formatted("%.3f], \"unit\": \"ratio\", ",
                      *std::max_element(ratios.begin(), ratios.end()), 0) +
            "\"against\": \"p99.99 of a turn of an empty loop that lasts as long; a record, " +
            when + "\", \"bar\": \"<= 2\", \"n\": " + std::to_string(size.repeats));
}

// More than the caches hold, and their memory of pages: a call comes from memory.
constexpr std::size_t kWalkedBytes = 64 << 20;

void MeasureCold(const Size& size, stepwell::Recorder& recorder) {
  ColdCalls calls(recorder, kWalkedBytes);
  std::vector<std::vector<ColdCalls::Cost>> runs;
  for (int i = 0; i < size.repeats; ++i) {
    runs.push_back(calls.Measure(size.cold_calls, std::random_device()()));
  }
  for (int kind = ColdCalls::kScopeBegin; kind < ColdCalls::kKindCount; ++kind) {
    std::vector<double> ours, clock, ratios, tenths, clock_tenths;
    for (const auto& costs : runs) {
      ours.push_back(costs[kind].median);
      clock.push_back(costs[ColdCalls::kClock].median);
      ratios.push_back(ours.back() / clock.back());
      tenths.push_back(costs[kind].tenth);
      clock_tenths.push_back(costs[ColdCalls::kClock].tenth);
    }
    const std::string name = ColdCalls::NameOf(static_cast<ColdCalls::Kind>(kind));
    Print("cold_" + name,
          Formatted("\"value\": %.3f, \"raw\": {\"ours\": %.0f, ", Median(ratios), Median(ours)) +
              Formatted("\"theirs\": %.0f}, \"spread\": [%.3f, ", Median(clock),
                        *std::min_element(ratios.begin(), ratios.end())) +
              Formatted("%.3f], \"unit\": \"ratio\", ",
                        *std::max_element(ratios.begin(), ratios.end()), 0) +
              "\"against\": \"a bare read of the clock, both once 64 MB were walked through; "
              "medians\", \"bar\": \"<= 1\", \"n\": " +
              std::to_string(size.repeats));
    std::fprintf(stderr,
                 "harm.cold_%s: median %.0f ns (a tenth below %.0f), the clock %.0f (%.0f)\n",
                 name.c_str(), Median(ours), Median(tenths), Median(clock), Median(clock_tenths));
  }
}

// What strace follows: this process, no thread of it but the one that calls.
int MakeCalls(const std::string& root) {
  stepwell::Recorder recorder(In(root));
  const auto step = [&] {
    STEPWELL_SCOPE("call");
    Call();
    recorder.StepEnd();
  };
  step();
  syscall(kMark);
  for (int i = 0; i < 100'000; ++i) step();
  syscall(kMark);
  return recorder.state() == STEPWELL_RECORDING ? 0 : 1;
}

// Lines of strace between the marks; -1 = it could not be done.
int CountCalls(const std::string& root) {
  const std::string trace = root + "/trace";
  if (!EndsWell(Start({"strace", "-o", trace, OwnPath(), "--calls", root + "/traced"}))) return -1;
  std::ifstream file(trace);
  int marks = 0;
  int calls = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.find("syscall_") == 0 && line.find("ENOSYS") != std::string::npos) {
      ++marks;
    } else if (marks == 1) {
      ++calls;
    }
  }
  return marks == 2 ? calls : -1;
}

bool MeasureCalls(const std::string& root, int repeats) {
  std::vector<double> counts;
  for (int i = 0; i < repeats; ++i) counts.push_back(CountCalls(root));
  if (*std::min_element(counts.begin(), counts.end()) < 0) {
    std::fprintf(stderr, "harm_bench: strace could not follow the calls\n");
    return false;
  }
  Print("system_calls",
        Formatted("\"value\": %.0f, \"unit\": \"calls\", ", Median(counts), 0) +
            "\"against\": \"none: what strace sees while 100,000 steps with a scope "
            "and a record each are recorded\", \"bar\": \"<= 0\", \"n\": " +
            std::to_string(repeats));
  return true;
}

enum class Part { kAll, kCold, kSteps };

// With an agent, then with one that is stopped: what it leaves in the rings fills them.
bool MeasureServed(const std::string& root, const Size& size, Part part) {
  const Agent agent(root);
  stepwell::Recorder recorder(In(root));
  if (!IsRecording(recorder)) return false;
  recorder.StepBegin();
  // By then the recorder knows how the processor's counter and the clock go together.
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  if (part != Part::kSteps) MeasureCold(size, recorder);
  if (part == Part::kCold) return true;
  MeasureSteps("step", size.usual, true, recorder);
  MeasureSteps("brief_step", size.briefest, false, recorder);
  if (part == Part::kSteps) return true;
  MeasureTail("tail", "an agent reads the rings", size);
  const std::uint64_t dropped = recorder.dropped_count();
  agent.Stop();
  for (int i = 0; i < 400'000; ++i) Call();
  MeasureTail("tail_full", "the rings are full", size);
  std::fprintf(stderr, "harm_bench: dropped %llu while it was served, %llu since\n",
               static_cast<unsigned long long>(dropped),
               static_cast<unsigned long long>(recorder.dropped_count() - dropped));
  return true;
}

bool MeasureWithoutSpool(const std::string& root, const Size& size) {
  std::ofstream(root + "/file") << "no directory";
  const stepwell::Recorder recorder(In(root + "/file"));
  if (recorder.state() != STEPWELL_MEMORY_ONLY) return false;
  MeasureTail("tail_without_spool", "the spool cannot be made", size);
  return true;
}

int Measure(Part part, const Size& size, const std::string& root) {
  StayOn(kTrainingProcessor);
  if (part != Part::kAll) return MeasureServed(root + "/spool", size, part) ? 0 : 1;
  return MeasureServed(root + "/spool", size, part) && MeasureWithoutSpool(root, size) &&
                 MeasureCalls(root, 3)
             ? 0
             : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && std::strcmp(argv[1], "--calls") == 0) return MakeCalls(argv[2]);
  const stepwell::bench::AskedOptions asked(
      "harm_bench",
      {stepwell::bench::AskedOptions::kQuick,
       {"--cold", "calls that find the caches cold alone"},
       {"--steps", "steps with calls and without alone: of 50 ms, 13 minutes, then of 5 ms"}},
      argc, argv);
  for (const char* name : {"STEPWELL_DISABLED", "STEPWELL_OFFLINE", "STEPWELL_SERVER"}) {
    unsetenv(name);
  }
  // Rings on a disk's file system wait for it where the kernel writes their pages back.
  std::string root =
      access("/dev/shm", W_OK) == 0
          ? "/dev/shm/stepwell-harm-XXXXXX"
          : (std::filesystem::temp_directory_path() / "stepwell-harm-XXXXXX").string();
  if (mkdtemp(root.data()) == nullptr) {
    std::perror("harm_bench: no directory");
    return 1;
  }
  Part part = Part::kAll;
  Size size{{std::chrono::milliseconds(50), 5200},
            {std::chrono::milliseconds(5), 20'000},
            5,
            300'000,
            500};
  if (asked.Has("--quick")) {
    size = {{size.usual.length, 100}, {size.briefest.length, 500}, 3, 100'000, 150};
  }
  if (asked.Has("--cold")) part = Part::kCold;
  if (asked.Has("--steps")) part = Part::kSteps;
  const int status = Measure(part, size, root);
  std::filesystem::remove_all(root);
  return status;
}
