#include "client/agent/detached_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace stepwell::agent {
namespace {

constexpr int kNice = 10;
// More than any kernel is built for; it leaves out those that are not there.
constexpr std::size_t kProcessorsMax = 16384;

// A trial that was bound to some processors is not slowed down there.
void RunEverywhere() {
  std::array<unsigned char, kProcessorsMax / 8> all;
  all.fill(0xff);
  sched_setaffinity(0, all.size(), reinterpret_cast<const cpu_set_t*>(all.data()));
}

void StepBehindOthers() {
  if (getpriority(PRIO_PROCESS, 0) < kNice) setpriority(PRIO_PROCESS, 0, kNice);
}

// As a program expects them, whatever the trial did with them.
void ResetSignals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGTERM, SIGCHLD, SIGALRM, SIGABRT}) std::signal(signal, SIG_DFL);
}

// A pipe that stays open would keep `train | cat` waiting.
absl::Status DropDescriptors() {
  const int null = open("/dev/null", O_RDWR);
  if (null < 0) return absl::ErrnoToStatus(errno, "open /dev/null");
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(null, fd);
  close_range(STDERR_FILENO + 1, ~0U, 0);
  return absl::OkStatus();
}

}  // namespace

absl::Status DetachProcess() {
  const pid_t child = fork();
  if (child < 0) return absl::ErrnoToStatus(errno, "fork the agent");
  if (child > 0) _exit(0);
  // Where there is no session of its own yet: a terminal that closes ends nothing.
  setsid();
  ResetSignals();
  StepBehindOthers();
  RunEverywhere();
  if (chdir("/") != 0) return absl::ErrnoToStatus(errno, "enter /");
  return DropDescriptors();
}

}  // namespace stepwell::agent
