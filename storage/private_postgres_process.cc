#include "storage/private_postgres_process.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr std::size_t kOutputBytesMax = 64 * 1024;
constexpr int kExecFailed = 127;

// What the child does between fork and exec. Only async-signal-safe calls: other threads of ours
// may hold the allocator's lock at the moment of the fork, so all is prepared before it.
struct ChildPlan {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  const PostgresAccount* account = nullptr;  // null: stay who we are
  int output = -1;
  const char* working_directory = "/";
  int death_signal = SIGKILL;
  bool own_group = false;
  pid_t parent = 0;
};

[[noreturn]] void Fail(const char* what) {
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  _exit(kExecFailed);
}

void ResetSignals() {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2}) {
    signal(number, SIG_DFL);
  }
}

[[noreturn]] void RunChild(const ChildPlan& plan) {
  const int null = open("/dev/null", O_RDONLY);
  dup2(null, STDIN_FILENO);
  dup2(plan.output, STDOUT_FILENO);
  dup2(plan.output, STDERR_FILENO);
  // No library of ours is trusted to have said so of each of its descriptors. Before Linux 5.11 it is.
  (void)close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  ResetSignals();
  umask(077);
  if (plan.own_group) setpgid(0, 0);
  if (plan.account != nullptr && plan.account->switch_user) {
    const gid_t gid = plan.account->gid;
    const uid_t uid = plan.account->uid;
    if (setgroups(1, &gid) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0) {
      Fail("cannot become the database user\n");
    }
  }
  // After setresuid, which clears it.
  prctl(PR_SET_PDEATHSIG, plan.death_signal);
  if (getppid() != plan.parent) Fail("the starting process is gone\n");
  if (chdir(plan.working_directory) != 0) Fail("cannot enter the working directory\n");
  execvpe(plan.arguments[0], plan.arguments.data(), plan.environment.data());
  Fail("cannot execute the program\n");
}

// Ours, without what may hold a secret of the master's: its user is another one.
std::vector<char*> Environment() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (text.substr(0, 9) != "STEPWELL_" && text.substr(0, 10) != "PGPASSWORD") {
      variables.push_back(*variable);
    }
  }
  variables.push_back(nullptr);
  return variables;
}

std::vector<char*> Arguments(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  return arguments;
}

absl::StatusOr<pid_t> Fork(const ChildPlan& plan) {
  const pid_t pid = fork();
  if (pid == 0) RunChild(plan);
  if (pid < 0) return absl::ResourceExhaustedError(absl::StrCat("fork: ", std::strerror(errno)));
  return pid;
}

std::string ReadAll(int fd) {
  std::string text;
  char piece[4096];
  while (true) {
    const ssize_t got = read(fd, piece, sizeof(piece));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece, std::min<std::size_t>(got, kOutputBytesMax - text.size()));
  }
}

}  // namespace

OwnedFd& OwnedFd::operator=(OwnedFd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.Release();
  }
  return *this;
}

OwnedFd::~OwnedFd() {
  if (fd_ >= 0) close(fd_);
}

OwnedFd OpenPidfd(pid_t pid) { return OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))); }

absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& command,
                                       const std::optional<PostgresAccount>& account) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  OwnedFd reader(ends[0]);
  OwnedFd writer(ends[1]);
  const ChildPlan plan{.arguments = Arguments(command),
                       .environment = Environment(),
                       .account = account.has_value() ? &*account : nullptr,
                       .output = writer.get(),
                       .parent = getpid()};
  const absl::StatusOr<pid_t> pid = Fork(plan);
  if (!pid.ok()) return pid.status();
  writer = OwnedFd();
  std::string output = ReadAll(reader.get());
  int status = 0;
  while (waitpid(*pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return output;
  return absl::InternalError(absl::StrCat(command[0], " failed: ", output));
}

absl::StatusOr<pid_t> StartServer(const std::vector<std::string>& command,
                                  const PostgresAccount& account, const std::string& log_file,
                                  const std::string& working_directory) {
  const OwnedFd log(open(log_file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600));
  if (log.get() < 0) {
    return absl::UnavailableError(absl::StrCat(log_file, ": ", std::strerror(errno)));
  }
  return Fork({.arguments = Arguments(command),
               .environment = Environment(),
               .account = &account,
               .output = log.get(),
               .working_directory = working_directory.c_str(),
               .death_signal = SIGINT,
               .own_group = true,
               .parent = getpid()});
}

}  // namespace stepwell
