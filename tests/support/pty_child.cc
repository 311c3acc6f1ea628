#include "tests/support/pty_child.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/check.h"

extern char** environ;

namespace stepwell::testing {
namespace {

std::vector<std::string> Environment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [name, value] : added) all.push_back(absl::StrCat(name, "=", value));
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

winsize WindowOf(int columns, int rows) {
  winsize window{};
  window.ws_col = static_cast<unsigned short>(columns);
  window.ws_row = static_cast<unsigned short>(rows);
  return window;
}

}  // namespace

PtyChild::PtyChild(const std::vector<std::string>& words,
                   const std::map<std::string, std::string>& environment, int columns, int rows) {
  std::vector<std::string> all_words = words;
  std::vector<std::string> all_environment = Environment(environment);
  const std::vector<char*> argv = Pointers(all_words);
  const std::vector<char*> envp = Pointers(all_environment);
  const winsize window = WindowOf(columns, rows);
  STEPWELL_CHECK(openpty(&terminal_, &holder_, nullptr, nullptr, &window) == 0);
  fcntl(terminal_, F_SETFD, FD_CLOEXEC);
  STEPWELL_CHECK(tcgetattr(holder_, &before_) == 0);
  pid_ = fork();
  STEPWELL_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    // Async-signal-safe calls only.
    setsid();
    ioctl(holder_, TIOCSCTTY, 0);
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(holder_, fd);
    close(holder_);
    execve(argv[0], argv.data(), envp.data());
    _exit(127);
  }
  fcntl(holder_, F_SETFD, FD_CLOEXEC);
}

PtyChild::~PtyChild() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(holder_);
  close(terminal_);
}

void PtyChild::Type(const std::string& keys) {
  STEPWELL_CHECK(write(terminal_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
}

void PtyChild::Resize(int columns, int rows) {
  const winsize window = WindowOf(columns, rows);
  STEPWELL_CHECK(ioctl(terminal_, TIOCSWINSZ, &window) == 0);
}

void PtyChild::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

bool PtyChild::ReadSome(absl::Duration patience) {
  pollfd watched = {terminal_, POLLIN, 0};
  if (poll(&watched, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) <= 0) return true;
  char bytes[4096];
  const ssize_t got = read(terminal_, bytes, sizeof(bytes));
  if (got <= 0) return false;
  shown_.append(bytes, static_cast<std::size_t>(got));
  return true;
}

bool PtyChild::WaitFor(const std::string& text, absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  while (shown_.find(text) == std::string::npos) {
    const absl::Duration left = deadline - absl::Now();
    if (left <= absl::ZeroDuration() || !ReadSome(left)) return false;
  }
  return true;
}

std::string PtyChild::Wait(absl::Duration patience) {
  const absl::Time deadline = absl::Now() + patience;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (absl::Now() >= deadline) return "still running";
    // It may wait for room on its terminal.
    ReadSome(absl::Milliseconds(10));
  }
  pid_ = 0;
  while (true) {
    const std::size_t before = shown_.size();
    ReadSome(absl::ZeroDuration());
    if (shown_.size() == before) break;
  }
  return WIFEXITED(status) ? absl::StrCat("exit ", WEXITSTATUS(status))
                           : absl::StrCat("killed by signal ", WTERMSIG(status));
}

bool PtyChild::IsRestored() const {
  termios now{};
  return tcgetattr(holder_, &now) == 0 && now.c_lflag == before_.c_lflag &&
         now.c_iflag == before_.c_iflag && now.c_oflag == before_.c_oflag;
}

}  // namespace stepwell::testing
