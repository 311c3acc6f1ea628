// PostgresProcess: starting programs as another user, and watching a process by pidfd. Functions
// block as said; thread-safe.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/private_postgres_account.h"

namespace stepwell {

// Runs a program to its end and returns what it wrote to stdout and stderr (64 KiB at most).
// kInternal with that text when it fails. With an account it runs as that user; it is killed when
// the calling thread ends.
absl::StatusOr<std::string> RunProgram(const std::vector<std::string>& command,
                                       const std::optional<PostgresAccount>& account);

// Starts a server: own process group, no stdin, output appended to `log_file`, in the directory
// `working_directory`, as the account. When the *thread* that calls this ends, the kernel sends the
// server SIGINT (fast shutdown): call it from the thread that stays. Returns the pid.
absl::StatusOr<pid_t> StartServer(const std::vector<std::string>& command,
                                  const PostgresAccount& account, const std::string& log_file,
                                  const std::string& working_directory);

// Owns a file descriptor; -1 is none. Move-only.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.Release()) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd();
  int get() const { return fd_; }
  int Release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_ = -1;
};

// A descriptor that polls readable when the process ends, child or not.
OwnedFd OpenPidfd(pid_t pid);

}  // namespace stepwell
