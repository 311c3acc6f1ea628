// live_training: 20 ranks that record 10 metrics ten times a second each, for a bench of what a browser
// shows of them. Rank 0 has one more, `beat`: the number of its tenth of a second since the start, from 0.
//
//   live_training TRIAL    STEPWELL_SERVER, STEPWELL_SPOOL_DIR say where
// Prints when it starts, in milliseconds of Unix time: beat n is recorded at that + 100 n. Ends with
// standard input. Exit: 0, or 1 where a rank could not record, 64 wrong use.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "stepwell/stepwell.h"

namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr int kRanks = 20;
constexpr int kMetrics = 10;
constexpr milliseconds kBeat{100};

bool InputHasEnded() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  char byte = 0;
  return poll(&input, 1, 0) > 0 && read(STDIN_FILENO, &byte, 1) <= 0;
}

bool Record(const char* trial, int rank, system_clock::time_point start) {
  stepwell::Recorder recorder({.trial = trial,
                               .attempt_key = "bench",
                               .rank = rank,
                               .world_size = kRanks,
                               .exit_wait = std::chrono::seconds(0)});
  if (recorder.state() != STEPWELL_RECORDING) return false;
  const stepwell::Series beat("training", "beat", {.unit = "1"});
  std::vector<stepwell::Series> metrics;
  for (int i = 0; i < kMetrics; ++i) {
    const std::string name = "metric_" + std::to_string(i);
    metrics.emplace_back("training", name.c_str());
  }
  // The parent alone reads the input; its children end with it.
  const pid_t parent = getppid();
  for (std::int64_t n = 0; getppid() == parent; ++n) {
    std::this_thread::sleep_until(start + n * kBeat);
    if (rank == 0) recorder.Record(beat, static_cast<double>(n));
    for (int i = 0; i < kMetrics; ++i) {
      recorder.Record(metrics[static_cast<std::size_t>(i)],
                      std::sin(static_cast<double>(n + rank * i) / 30) + i);
    }
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "use: %s TRIAL\n", argv[0]);
    return 64;
  }
  const auto start =
      std::chrono::time_point_cast<milliseconds>(system_clock::now()) + std::chrono::seconds(1);
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) _exit(Record(argv[1], rank, start) ? 0 : 1);
    ranks.push_back(child);
  }
  std::printf("%lld\n", static_cast<long long>(start.time_since_epoch().count()));
  std::fflush(stdout);
  int exit_code = 0;
  while (!InputHasEnded()) {
    std::this_thread::sleep_for(kBeat);
    // One that could not record has nothing to show.
    int status = 0;
    if (waitpid(-1, &status, WNOHANG) > 0) {
      exit_code = 1;
      break;
    }
  }
  for (const pid_t rank : ranks) kill(rank, SIGTERM);
  while (wait(nullptr) > 0) {
  }
  return exit_code;
}
