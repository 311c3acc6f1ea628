#include "tests/support/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"

extern char** environ;

namespace stepwell::testing {
namespace {

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("STEPWELL_", 0) != 0 || text.rfind("STEPWELL_PG_BINDIR", 0) == 0) {
      all.push_back(text);
    }
  }
  // Tests that want the agent that a recorder starts say so.
  if (added.count("STEPWELL_AGENT") == 0) all.push_back("STEPWELL_AGENT=off");
  for (const auto& [name, value] : added) all.push_back(absl::StrCat(name, "=", value));
  return all;
}

// In the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void Become(const std::vector<char*>& words, const std::vector<char*>& environment,
                         int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execve(words[0], words.data(), environment.data());
  _exit(127);
}

}  // namespace

namespace {

// Taken before any test unshares its mounts: from then on, in a chroot, the kernel names the program
// by a path from outside.
const std::filesystem::path kOwnFolder =
    std::filesystem::read_symlink("/proc/self/exe").parent_path();

}  // namespace

// Of the folder STEPWELL_TEST_PROGRAMS, where there is one of that name: what another build made (tests/parts.sh).
std::string BuiltProgram(const std::string& name) {
  const char* other = std::getenv("STEPWELL_TEST_PROGRAMS");
  if (other != nullptr && std::filesystem::exists(std::filesystem::path(other) / name)) {
    return std::filesystem::path(other) / name;
  }
  return kOwnFolder / name;
}

bool Eventually(const std::function<bool()>& condition, absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (!condition()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return true;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, 0)), ending_(std::move(other.ending_)) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  Kill();
  pid_ = std::exchange(other.pid_, 0);
  ending_ = std::move(other.ending_);
  return *this;
}

ChildProcess::~ChildProcess() { Kill(); }

void ChildProcess::Start(const std::vector<std::string>& words,
                         const std::map<std::string, std::string>& environment,
                         const std::string& log) {
  STEPWELL_CHECK(!running());
  STEPWELL_CHECK(access(words[0].c_str(), X_OK) == 0);
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  STEPWELL_CHECK(output >= 0);
  std::vector<std::string> word_texts = words;
  std::vector<std::string> environment_texts = Environment(environment);
  const std::vector<char*> word_pointers = Pointers(word_texts);
  const std::vector<char*> environment_pointers = Pointers(environment_texts);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) Become(word_pointers, environment_pointers, output, parent);
  STEPWELL_CHECK(pid_ > 0);
  close(output);
}

void ChildProcess::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

void ChildProcess::Kill() {
  Signal(SIGKILL);
  Wait(absl::InfiniteDuration());
}

std::string ChildProcess::Wait(absl::Duration patience) {
  return Eventually([this] { return !running(); }, patience) ? ending_ : "still running";
}

bool ChildProcess::running() {
  if (pid_ == 0) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == 0) return true;
  pid_ = 0;
  ending_ = WIFEXITED(status) ? absl::StrCat("exit ", WEXITSTATUS(status))
                              : absl::StrCat("killed by signal ", WTERMSIG(status));
  return false;
}

}  // namespace stepwell::testing
