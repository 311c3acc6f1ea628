#include "client/recorder/src/child_agents.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "client/recorder/src/unique_fd.h"

namespace stepwell::recorder {
namespace {

// Agents that die at once, each before the next is seen.
constexpr std::size_t kKnownMax = 16;

struct ProcessState {
  char state = '?';
  pid_t parent = 0;
  std::uint64_t start_ticks = 0;
};

// /proc/PID/stat; nothing where it cannot be read.
std::optional<ProcessState> ReadProcess(pid_t pid) {
  const UniqueFd file(
      open(("/proc/" + std::to_string(pid) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 1024> text{};
  if (file.get() < 0 || read(file.get(), text.data(), text.size() - 1) <= 0) return std::nullopt;
  // The name before it may hold anything.
  const char* rest = std::strrchr(text.data(), ')');
  ProcessState process;
  unsigned long long start_ticks = 0;
  if (rest == nullptr ||
      std::sscanf(rest + 1,
                  " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
                  &process.state, &process.parent, &start_ticks) != 3) {
    return std::nullopt;
  }
  process.start_ticks = start_ticks;
  return process;
}

// Whether processes whose parent ended become children of this one.
bool TakesOrphans() {
  int is_subreaper = 0;
  return getpid() == 1 ||
         (prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0) == 0 && is_subreaper != 0);
}

}  // namespace

void ChildAgents::See(pid_t holder) {
  if (known_.empty() && !TakesOrphans()) return;
  std::erase_if(known_,
                [holder](const Known& agent) { return agent.pid != holder && IsOver(agent); });
  const bool is_known = std::any_of(known_.begin(), known_.end(),
                                    [holder](const Known& agent) { return agent.pid == holder; });
  if (holder == 0 || is_known || known_.size() >= kKnownMax) return;
  const std::optional<ProcessState> process = ReadProcess(holder);
  if (process && process->parent == getpid()) known_.push_back({holder, process->start_ticks});
}

bool ChildAgents::IsOver(const Known& agent) {
  const std::optional<ProcessState> process = ReadProcess(agent.pid);
  const bool is_same =
      process && process->parent == getpid() && process->start_ticks == agent.start_ticks;
  // The trial waited for it.
  if (!is_same) return true;
  return process->state == 'Z' && waitpid(agent.pid, nullptr, WNOHANG) != 0;
}

}  // namespace stepwell::recorder
