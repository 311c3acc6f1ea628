// A training process that forks its loaders anew each epoch, as PyTorch's DataLoader does: WORKERS (1 ... 98) at a
// time, each of which records 1000 numbers and ends in its own way. The numbers say who recorded them:
// epoch * 1,000,000 + worker * 10,000 + number, worker WORKERS being the process itself.
//
//   forking_loader SPOOL_DIR TRIAL WORKERS
//
// Exit code: 0 all is stored, 3 not within 30 s, 1 anything else.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "stepwell/recorder.h"

namespace {

constexpr int kEpochs = 3;
constexpr int kWorkersMax = 98;
constexpr int kNumbers = 1000;

void RecordNumbers(stepwell_series_id series, int epoch, int worker) {
  for (int i = 0; i < kNumbers; ++i) {
    stepwell_record(series, epoch * 1'000'000 + worker * 10'000 + i);
  }
}

// All live until the last has recorded: their indexes are 0 ... WORKERS - 1.
[[noreturn]] void RunWorker(stepwell_series_id series, int epoch, int worker, int done, int go) {
  RecordNumbers(series, epoch, worker);
  char byte = 0;
  if (write(done, &byte, 1) != 1 || read(go, &byte, 1) != 0) _exit(1);
  switch (worker % 4) {
    case 0:
      raise(SIGKILL);
      break;
    case 1:
      _exit(0);
    case 2:
      std::exit(0);
    default:
      stepwell_close(0);
  }
  _exit(0);
}

bool RunEpoch(stepwell_series_id series, int epoch, int workers) {
  std::array<int, 2> done{};
  std::array<int, 2> go{};
  if (pipe(done.data()) != 0 || pipe(go.data()) != 0) return false;
  for (int worker = 0; worker < workers; ++worker) {
    const pid_t child = fork();
    if (child < 0) return false;
    if (child == 0) {
      close(go[1]);
      RunWorker(series, epoch, worker, done[1], go[0]);
    }
  }
  RecordNumbers(series, epoch, workers);
  char byte = 0;
  for (int worker = 0; worker < workers; ++worker) {
    if (read(done[0], &byte, 1) != 1) return false;
  }
  for (const int fd : {go[1], go[0], done[0], done[1]}) close(fd);
  while (wait(nullptr) > 0) {
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  const int workers = std::atoi(argv[3]);
  if (workers < 1 || workers > kWorkersMax) return 1;
  stepwell_options options;
  stepwell_options_init(&options);
  options.spool_dir = argv[1];
  options.trial = argv[2];
  if (stepwell_open(&options) != STEPWELL_RECORDING) return 1;
  const stepwell_series_id series =
      stepwell_define_series("loader", "number", "1", STEPWELL_GAUGE, nullptr, 0);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    if (!RunEpoch(series, epoch, workers)) return 1;
  }
  return stepwell_close(30'000) == 1 ? 0 : 3;
}
