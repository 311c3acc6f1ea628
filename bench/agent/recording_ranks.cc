// recording_ranks: many training processes that record at a steady rate, for a bench of the agent that
// serves them. Each rank is a process of its own that ends a step every 20 ms and spreads its events
// over scopes of that step.
//
//   recording_ranks SPOOL_DIR TRIAL RANKS EVENTS_PER_SECOND SECONDS
// EVENTS_PER_SECOND is of all ranks together. Prints "recorded N dropped N" at the end: events.
// Exit: 0, or 1 where a rank could not record, 64 wrong use.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "stepwell/stepwell.h"

namespace {

using std::chrono::steady_clock;

constexpr auto kStep = std::chrono::milliseconds(20);

struct Totals {
  std::atomic<std::uint64_t> recorded{0};
  std::atomic<std::uint64_t> dropped{0};
};

bool Record(const char* spool_dir, const char* trial, int rank, int rank_count, int events_per_step,
            int step_count, Totals& totals) {
  stepwell::Recorder recorder({.spool_dir = spool_dir,
                               .trial = trial,
                               .attempt_key = "bench",
                               .rank = rank,
                               .world_size = rank_count,
                               .exit_wait = std::chrono::seconds(0)});
  if (recorder.state() != STEPWELL_RECORDING) return false;
  static const std::array<stepwell::ScopeName, 4> kScopes = {
      stepwell::ScopeName("dataloader_next"), stepwell::ScopeName("to_device"),
      stepwell::ScopeName("train_batch"), stepwell::ScopeName("optimizer_step")};
  // Ranks of a job step at different moments.
  auto due = steady_clock::now() + kStep * rank / rank_count;
  recorder.StepBegin();
  for (int step = 0; step < step_count; ++step) {
    std::this_thread::sleep_until(due);
    due += kStep;
    for (int i = 0; i + 1 < events_per_step; ++i) {
      const stepwell::Scope scope(kScopes[static_cast<std::size_t>(i) % kScopes.size()]);
    }
    recorder.StepEnd();
  }
  totals.recorded +=
      static_cast<std::uint64_t>(events_per_step) * static_cast<std::uint64_t>(step_count);
  totals.dropped += recorder.dropped_count();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "use: %s SPOOL_DIR TRIAL RANKS EVENTS_PER_SECOND SECONDS\n", argv[0]);
    return 64;
  }
  const int rank_count = std::atoi(argv[3]);
  const int steps_per_second = static_cast<int>(std::chrono::seconds(1) / kStep);
  const int events_per_step = std::atoi(argv[4]) / rank_count / steps_per_second;
  const int step_count = std::atoi(argv[5]) * steps_per_second;
  void* shared =
      mmap(nullptr, sizeof(Totals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || rank_count < 1 || events_per_step < 2 || step_count < 1) return 64;
  Totals& totals = *new (shared) Totals;
  for (int rank = 0; rank < rank_count; ++rank) {
    if (fork() != 0) continue;
    _exit(Record(argv[1], argv[2], rank, rank_count, events_per_step, step_count, totals) ? 0 : 1);
  }
  bool all_recorded = true;
  int status = 0;
  while (wait(&status) > 0) all_recorded = all_recorded && status == 0;
  std::printf("recorded %llu dropped %llu\n",
              static_cast<unsigned long long>(totals.recorded.load()),
              static_cast<unsigned long long>(totals.dropped.load()));
  return all_recorded ? 0 : 1;
}
