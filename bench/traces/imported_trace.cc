#include "bench/traces/imported_trace.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/trace/gzip_packer.h"
#include "bench/load/bench_run.h"
#include "bench/load/loaded_master.h"
#include "bench/load/pairs.h"
#include "bench/load/tick_load.h"
#include "bench/traces/generated_trace.h"

extern char** environ;

namespace stepwell::bench {
namespace {

constexpr int kRuns = 3;
constexpr double kMegabyte = 1e6;
constexpr char kTrial[] = "imported";

double SecondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

struct Ran {
  double seconds = 0;
  double megabytes = 0;  // the largest resident size
  double cpu_seconds = 0;
};

// Until it ends, well.
Ran RunCommand(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto begin = std::chrono::steady_clock::now();
  pid_t pid = 0;
  const int failed = posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  rusage used{};
  if (failed != 0 || wait4(pid, &status, 0, &used) != pid || status != 0) {
    DieUnless(absl::InternalError(absl::StrCat(words[1], " ", words[2], " failed")));
  }
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return {SecondsSince(begin), static_cast<double>(used.ru_maxrss) * 1024 / kMegabyte,
          seconds(used.ru_utime) + seconds(used.ru_stime)};
}

// From now on.
void ForgetPeak(pid_t pid) { std::ofstream(absl::StrCat("/proc/", pid, "/clear_refs")) << "5"; }

double PeakMegabytes(pid_t pid) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    absl::string_view rest = line;
    std::int64_t kib = 0;
    if (!absl::ConsumePrefix(&rest, "VmHWM:")) continue;
    if (absl::SimpleAtoi(absl::StripSuffix(rest, " kB"), &kib)) {
      return static_cast<double>(kib) * 1024 / kMegabyte;
    }
  }
  DieUnless(absl::InternalError("the master's size is not to be read"));
  return 0;
}

// Bytes of what is written.
std::int64_t WriteTrace(const std::string& path, int launch_count) {
  std::ofstream file(path, std::ios::binary);
  std::int64_t bytes = 0;
  DieUnless(GeneratedProfile(3, launch_count)([&](std::string_view piece) -> absl::Status {
    bytes += static_cast<std::int64_t>(piece.size());
    if (!file.write(piece.data(), static_cast<std::streamsize>(piece.size()))) {
      return absl::ResourceExhaustedError("no room for a trace");
    }
    return absl::OkStatus();
  }));
  return bytes;
}

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Of a processor, to pack such a file by zlib alone.
double PackingSeconds(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string piece(1 << 20, '\0');
  double seconds = 0;
  GzipPacker packer([](std::string_view) { return absl::OkStatus(); });
  while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
    const double begin = ProcessorSeconds();
    DieUnless(packer.Feed(std::string_view(piece.data(), static_cast<std::size_t>(file.gcount()))));
    seconds += ProcessorSeconds() - begin;
  }
  DieUnless(packer.Finish());
  return seconds;
}

struct Merges {
  std::vector<double> rates, command, master;
};

void PrintMerges(const std::string& name, const std::string& what, const Merges& merges) {
  PrintOurs(name, "MB/s", what, Promised(">= 100"), merges.rates);
  PrintOurs(name + "_resident", "MB", "the command's largest resident size meanwhile",
            Promised("<= 300"), merges.command);
  PrintOurs(name + "_master", "MB", "the master's largest resident size meanwhile",
            Promised("<= 300"), merges.master);
}

}  // namespace

void MeasureImport(const std::string& binary, bool is_quick) {
  const LoadedMaster master(kTrial, MakeDay(0, 1));
  std::string name = std::filesystem::temp_directory_path() / "stepwell-trace-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) DieUnless(absl::InternalError("no directory"));
  const std::filesystem::path folder = name;
  const absl::Cleanup clean = [&folder] { std::filesystem::remove_all(folder); };
  std::string path = folder / "0.json";
  const double megabytes =
      static_cast<double>(WriteTrace(path, is_quick ? 80'000 : 800'000)) / kMegabyte;
  Pairs cpu;
  std::vector<double> rates, command, ours;
  for (int run = 0; run < kRuns; ++run) {
    // Another name, or it is there already.
    const std::string next = folder / absl::StrCat("run", run, ".json");
    std::filesystem::rename(path, next);
    path = next;
    cpu.theirs.push_back(PackingSeconds(path));
    ForgetPeak(master.pid());
    const double before = master.CpuSeconds();
    const Ran brought =
        RunCommand({binary, "trace", "import", kTrial, path, "--server", master.grpc_address()});
    cpu.ours.push_back(brought.cpu_seconds);
    rates.push_back(megabytes / brought.seconds);
    command.push_back(brought.megabytes);
    ours.push_back(PeakMegabytes(master.pid()));
    std::fprintf(stderr,
                 "traces.import: %.0f MB in %.2f s, %.2f s of a processor there (zlib alone %.2f), "
                 "%.2f s at the master\n",
                 megabytes, brought.seconds, brought.cpu_seconds, cpu.theirs.back(),
                 master.CpuSeconds() - before);
  }
  // Into either form, by turns.
  Merges perfetto, json;
  for (int run = 0; run < kRuns; ++run) {
    for (auto& [merges, file] : {std::pair(&perfetto, "merged.pftrace"), {&json, "merged.json"}}) {
      ForgetPeak(master.pid());
      const Ran made = RunCommand({binary, "trace", "merge", "--trial", kTrial, "1", "--server",
                                   master.grpc_address(), "--output", folder / file});
      merges->rates.push_back(megabytes / made.seconds);
      merges->command.push_back(made.megabytes);
      merges->master.push_back(PeakMegabytes(master.pid()));
    }
  }
  const std::string what = absl::StrCat("JSON of Kineto's form, ", static_cast<int>(megabytes),
                                        " MB, by 'stepwell trace import'");
  PrintOurs("traces.import_command", "MB/s", what + ", until the master holds it",
            Promised(">= 100"), rates);
  PrintRatio("traces.import_cpu",
             "processor time of zlib alone (level 1) for these bytes; ours is the command's",
             OwnBar("<= 3"), cpu);
  PrintOurs("traces.import_resident", "MB", "the command's largest resident size meanwhile",
            Promised("<= 300"), command);
  PrintOurs("traces.import_master", "MB", "the master's largest resident size meanwhile",
            Promised("<= 300"), ours);
  PrintMerges("traces.stored_merge", "the same into Perfetto's form, merged at the master",
              perfetto);
  PrintMerges("traces.stored_json", "the same into Chrome's form, merged at the master", json);
}

}  // namespace stepwell::bench
