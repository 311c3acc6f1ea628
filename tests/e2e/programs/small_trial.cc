// A trial that records COUNT numbered samples and ends: small_trial END COUNT [SECONDS]. It knows
// nothing of agents and says one line on stdout and one on stderr. It records over SECONDS, evenly.
// END:
//   return    from main, with an open recorder
//   close     after stepwell_close; exit code 3 unless all is stored by then
//   _exit     at once: nothing of ours runs
//   daemon    opens, records, leaves its terminal by two forks, and records COUNT more, as a process
//             of its own that opens again
//   exec      opens, records, and becomes `small_trial return COUNT`
//   memory    as return, and may record into memory only
//   children  has children of its own all the time, and waits for whichever ends; exit code 9 if
//             that is none of them
// Else the exit code is 7, or 4 where it could not record. With TRIAL_TIMES=FILE it writes down, in µs
// since 1970, one after the other: before and after its Open, and before and after its Close; of the
// last two what it lives to see.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "stepwell/recorder.h"

namespace stepwell::testing {
namespace {

using std::chrono::duration;
using std::chrono::steady_clock;

constexpr int kExitCode = 7;

void NoteTime() {
  const char* path = std::getenv("TRIAL_TIMES");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::fprintf(file, "%lld\n", static_cast<long long>(now_us));
  std::fclose(file);
}

bool Open() {
  NoteTime();
  const bool is_recording = stepwell_open(nullptr) == STEPWELL_RECORDING;
  NoteTime();
  if (is_recording) return true;
  std::fprintf(stderr, "not recording: %s\n", stepwell_message());
  return false;
}

void RecordNumbered(int count, double seconds) {
  const stepwell_series_id numbered =
      stepwell_define_series("start", "numbered", "1", STEPWELL_GAUGE, nullptr, 0);
  const auto begin = steady_clock::now();
  for (int i = 0; i < count; ++i) {
    stepwell_record(numbered, i);
    if (seconds <= 0) continue;
    std::this_thread::sleep_until(begin + std::chrono::duration_cast<steady_clock::duration>(
                                              duration<double>(seconds * (i + 1) / count)));
  }
}

// False where a child ended that is none of ours.
bool HasOwnChildrenOnly(double seconds) {
  const auto until = steady_clock::now() + duration<double>(seconds);
  while (steady_clock::now() < until) {
    const pid_t own = fork();
    if (own == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      _exit(0);
    }
    const pid_t ended = waitpid(-1, nullptr, 0);
    if (ended == own) continue;
    std::fprintf(stderr, "a strange child: %d\n", static_cast<int>(ended));
    waitpid(own, nullptr, 0);
    return false;
  }
  return true;
}

// The process that goes on is a child of init, in a session of its own.
void Daemonise() {
  if (fork() != 0) _exit(kExitCode);
  setsid();
  if (fork() != 0) _exit(0);
}

int Main(int argc, char** argv) {
  if (argc < 3) return 64;
  const std::string end = argv[1];
  const int count = std::atoi(argv[2]);
  const double seconds = argc > 3 ? std::atof(argv[3]) : 0;
  std::printf("trained\n");
  std::fprintf(stderr, "warned\n");
  std::fflush(stdout);
  if (end == "memory") {
    stepwell_open(nullptr);
  } else if (!Open()) {
    return 4;
  }
  if (end == "children") {
    // In the first instants the recorder may have one on its way to becoming nobody's.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    if (!HasOwnChildrenOnly(seconds)) return 9;
  }
  RecordNumbered(count, end == "children" ? 0 : seconds);
  if (end == "_exit") _exit(kExitCode);
  NoteTime();
  if (end == "close") {
    if (stepwell_close(20'000) != 1) return 3;
    NoteTime();
  }
  if (end == "exec") execl("/proc/self/exe", argv[0], "return", argv[2], nullptr);
  if (end == "daemon") {
    Daemonise();
    if (!Open()) return 4;
    RecordNumbered(count, 0);
  }
  return kExitCode;
}

}  // namespace
}  // namespace stepwell::testing

int main(int argc, char** argv) { return stepwell::testing::Main(argc, argv); }
