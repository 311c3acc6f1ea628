#include "bench/traces/traced_spans.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/harm/processor.h"
#include "bench/load/bench_run.h"
#include "bench/load/children.h"
#include "bench/load/master_child.h"
#include "bench/load/pairs.h"
#include "client/traces/trace_file.h"

extern char** environ;

namespace stepwell::bench {
namespace {

constexpr int kTrainingProcessor = 0;
constexpr int kOtherProcessor = 1;
// As training/traced_training.cc has them.
constexpr int kSpansOfStep = 50;

struct Size {
  int pair_count;
  int steps;
};

struct Turn {
  double median_ns = 0;
  double mean_ns = 0;
};

// A child that trains, with pipes for its turns.
class Trainer {
 public:
  Trainer(const std::string& program, const std::string& spool, const std::string& trial,
          const std::string& traces) {
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
      DieUnless(absl::InternalError("no pipe"));
    }
    const char* const words[] = {program.c_str(), spool.c_str(), trial.c_str(), nullptr};
    std::vector<std::string> variables;
    for (char** each = environ; *each != nullptr; ++each) {
      if (!absl::StartsWith(*each, "STEPWELL_")) variables.emplace_back(*each);
    }
    if (!traces.empty()) {
      variables.push_back("STEPWELL_TRACES=" + traces);
      variables.emplace_back("STEPWELL_TRACES_UPLOAD=0");
    }
    std::vector<char*> environment;
    for (std::string& each : variables) environment.push_back(each.data());
    environment.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
    StayOn(kTrainingProcessor);  // which the child inherits
    const int failed = posix_spawn(&pid_, program.c_str(), &files, nullptr,
                                   const_cast<char* const*>(words), environment.data());
    StayOn(kOtherProcessor);
    posix_spawn_file_actions_destroy(&files);
    close(to[0]);
    close(from[1]);
    if (failed != 0) DieUnless(absl::InternalError("no process to train"));
    in_ = fdopen(to[1], "w");
    out_ = fdopen(from[0], "r");
  }
  ~Trainer() {
    std::fclose(in_);  // it ends
    std::fclose(out_);
    waitpid(pid_, nullptr, 0);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  Turn Take(int steps) {
    std::fprintf(in_, "%d\n", steps);
    std::fflush(in_);
    Turn turn;
    if (std::fscanf(out_, "%lf %lf", &turn.median_ns, &turn.mean_ns) != 2) {
      DieUnless(absl::InternalError("a training ended, or lost events: its stderr says why"));
    }
    return turn;
  }

 private:
  pid_t pid_ = 0;
  std::FILE* in_ = nullptr;
  std::FILE* out_ = nullptr;
};

pid_t StartAgent(const std::string& binary, const std::string& server, const std::string& spool) {
  const char* const words[] = {binary.c_str(), "agent",       "--server",           server.c_str(),
                               "--spool-dir",  spool.c_str(), "--no-auto-sampling", nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int failed =
      posix_spawn(&pid, binary.c_str(), &files, nullptr, const_cast<char* const*>(words), environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) DieUnless(absl::NotFoundError("cannot start " + binary));
  return pid;
}

// Begins and ends of all finished traces there, once there are any.
std::int64_t RecordedEnds(const std::string& traces) {
  for (int i = 0; i < 300; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(100))) {
    std::int64_t ends = 0;
    std::error_code none;
    for (const auto& file : std::filesystem::directory_iterator(traces, none)) {
      if (!absl::StartsWith(file.path().filename().string(), "ep")) continue;
      const auto scanned = ScanTrace(traces::SourceOfFile(file.path().string()));
      DieUnless(scanned.status());
      ends += scanned->form.event_count;
    }
    if (ends > 0) return ends;
  }
  return 0;
}

std::string FreshDirectory() {
  std::string root = access("/dev/shm", W_OK) == 0 ? "/dev/shm/stepwell-traces-XXXXXX"
                                                   : "/tmp/stepwell-traces-XXXXXX";
  if (mkdtemp(root.data()) == nullptr) DieUnless(absl::InternalError("no directory"));
  return root;
}

}  // namespace

void MeasureTracedSpans(const std::string& bin, bool is_quick) {
  const std::string binary = bin + "/stepwell", trainer = bin + "/traced_training";
  StayOn(kOtherProcessor);
  const auto master = MasterChild::Start(binary);
  DieUnless(master.status());
  const Size size = is_quick ? Size{9, 150} : Size{41, 500};
  const std::string root = FreshDirectory();
  const std::string spool = root + "/spool", traces = root + "/traces";
  std::filesystem::create_directory(spool);
  std::filesystem::permissions(spool, std::filesystem::perms::owner_all);
  AdoptChild(StartAgent(binary, master->grpc_address(), spool), root);
  Pairs median, mean;
  {
    Trainer traced(trainer, spool, "traced", traces), plain(trainer, spool, "plain", "");
    for (int i = -1; i < size.pair_count; ++i) {
      Turn ours, theirs;
      // Who begins changes.
      if (i % 2 == 0) ours = traced.Take(size.steps);
      theirs = plain.Take(size.steps);
      if (i % 2 != 0) ours = traced.Take(size.steps);
      if (i < 0) continue;  // rings and caches are new
      median.ours.push_back(ours.median_ns);
      median.theirs.push_back(theirs.median_ns);
      mean.ours.push_back(ours.mean_ns);
      mean.theirs.push_back(theirs.mean_ns);
    }
  }
  const std::int64_t wanted = std::int64_t{2} * size.pair_count * size.steps * kSpansOfStep;
  const std::int64_t recorded = RecordedEnds(traces);
  std::fprintf(
      stderr,
      "traces.span: %.1f ns traced, %.1f ns not; means %.1f and %.1f; %lld spans in the trace\n",
      Median(median.ours), Median(median.theirs), Median(mean.ours), Median(mean.theirs),
      static_cast<long long>(recorded / 2));
  if (recorded < wanted) DieUnless(absl::InternalError("spans are missing in the trace"));
  std::vector<double> more;
  for (std::size_t i = 0; i < median.ours.size(); ++i) {
    more.push_back(median.ours[i] - median.theirs[i]);
  }
  PrintOurs(
      "traces.span", "ns",
      absl::StrCat("what a span costs the thread without STEPWELL_TRACES, in turns, subtracted: ",
                   static_cast<int>(Median(median.theirs)), " ns; an agent serves both"),
      Promised("<= 60"), more);
}

}  // namespace stepwell::bench
