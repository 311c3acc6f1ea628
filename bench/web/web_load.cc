// web_load: a master that holds a trial of 15 machines with 8 GPUs and 8 ranks each, 1065 series, for
// web_bench.py to look at.
//
//   web_load MINUTES    452,000 samples each
// Prints {"grpc": ADDRESS, "http": ADDRESS, "trial": NAME, "samples": COUNT} when all is stored and merged
// and the trial has ended; serves until standard input ends.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/load/bench_run.h"
#include "bench/load/loaded_master.h"
#include "bench/load/tick_load.h"

namespace stepwell::bench {
namespace {

constexpr int kMachines = 15;
constexpr int kMinutesAtOnce = 20;
constexpr char kTrial[] = "wide";

// As an agent names them (docs/metrics.md), and of every other rank what a training records of itself: the
// page has 15 charts of them.
TickLoad Named(TickLoad load) {
  for (TickWriter& writer : load.writers) {
    for (LoadSeries& series : writer.series) {
      const std::string name = series.name;
      if (name.starts_with("disk")) series.metric_group = "disk";
      if (name.starts_with("memory")) series.metric_group = "memory";
      if (name.starts_with("cpu")) series.metric_group = "cpu";
      if (name == "net_throughput") {
        series = {.metric_group = "network",
                  .name = name + (series.device == "0" ? "_sent" : "_recv"),
                  .device = ""};
      }
      if (writer.rank % 2 == 1) series.metric_group = "training";
    }
  }
  return load;
}

int Main(int minutes) {
  // As a cluster's master at rest: merges do not wait for the usual interval.
  LoadedMaster master(kTrial, Named(MakeWide(0, 1, nullptr, kMachines)), {"--fold-interval", "1s"});
  std::int64_t samples = 0;
  for (int minute = 0; minute < minutes; minute += kMinutesAtOnce) {
    const TickLoad load =
        MakeWide(minute, std::min(kMinutesAtOnce, minutes - minute), nullptr, kMachines);
    master.Load(load);
    samples += load.sample_count;
    std::fprintf(stderr, "web: %d of %d minutes, %.0f M samples\n", minute + kMinutesAtOnce,
                 minutes, static_cast<double>(samples) / 1e6);
  }
  master.Close();
  master.Settle();
  master.CheckHeld(samples);
  // What so much at once left to write: a master at rest has no such checkpoint before it.
  const absl::Status written = master.sql().Exec("checkpoint").status();
  if (!written.ok()) {
    std::fprintf(stderr, "web: checkpoint: %s\n", written.ToString().c_str());
    return 1;
  }
  // Each byte asks for a new master.
  for (char byte = 0;;) {
    std::printf("%s\n", nlohmann::json{{"grpc", master.grpc_address()},
                                       {"http", master.http_address()},
                                       {"trial", kTrial},
                                       {"samples", samples}}
                            .dump()
                            .c_str());
    std::fflush(stdout);
    if (read(STDIN_FILENO, &byte, 1) <= 0) return 0;
    master.Restart();
  }
}

}  // namespace
}  // namespace stepwell::bench

int main(int argc, char** argv) {
  const int minutes = argc == 2 ? std::atoi(argv[1]) : 0;
  if (minutes < 1) {
    std::fprintf(stderr, "use: %s MINUTES\n", argv[0]);
    return 64;
  }
  return stepwell::bench::Main(minutes);
}
