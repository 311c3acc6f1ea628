#include "tests/faults/programs/disturbance.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "stepwell/stepwell.h"

namespace stepwell::faults {
namespace {

std::atomic<int> g_signal_count{0};

}  // namespace

Disturbance::Disturbance(std::int64_t kinds) : kinds_(kinds) {
  if (!Has(kSignals)) return;
  // Without SA_RESTART, to any thread that takes it.
  struct sigaction action = {};
  action.sa_handler = [](int) { g_signal_count.fetch_add(1, std::memory_order_relaxed); };
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{.it_interval = {0, 500}, .it_value = {0, 500}};
  setitimer(ITIMER_REAL, &often, nullptr);
}

void Disturbance::Again() {
  if (Has(kForks)) Child(/*executes=*/false);
  if (Has(kExecs)) Child(/*executes=*/true);
  if (Has(kDescriptors)) UseUpDescriptors();
}

// One that leaves at once is in the middle of a scope, as its parent may be.
void Disturbance::Child(bool executes) {
  const pid_t child = fork();
  if (child == 0) {
    if (executes) {
      execl("/bin/true", "true", nullptr);
      _exit(1);
    }
    STEPWELL_SCOPE("left");
    _exit(0);
  }
  int status = 0;
  pid_t waited = -1;
  do {
    waited = child > 0 ? waitpid(child, &status, 0) : -1;
  } while (waited < 0 && errno == EINTR);
  if (waited != child || child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    ++failed_count_;
  }
  ++(executes ? exec_count_ : fork_count_);
}

void Disturbance::UseUpDescriptors() {
  while (true) {
    const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return;
    descriptors_.push_back(descriptor);
  }
}

std::string Disturbance::ToText() const {
  return "forks " + std::to_string(fork_count_) + ", execs " + std::to_string(exec_count_) +
         ", signals " + std::to_string(g_signal_count.load()) + ", descriptors " +
         std::to_string(descriptors_.size()) + ", failed " + std::to_string(failed_count_);
}

}  // namespace stepwell::faults
