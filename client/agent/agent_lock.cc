#include "client/agent/agent_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

constexpr off_t kServingByte = 0;
constexpr off_t kLeavingByte = 1;
constexpr absl::Duration kLeavingPoll = absl::Milliseconds(20);

struct flock ByteLock(off_t byte, short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

struct Holder {
  bool is_there = false;
  bool only_reads = false;
  pid_t pid = 0;  // 0 = a process that is not seen from here
};
Holder HolderOf(int fd, off_t byte) {
  struct flock lock = ByteLock(byte, F_WRLCK);
  if (fcntl(fd, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return {};
  return {true, lock.l_type == F_RDLCK, std::max<pid_t>(lock.l_pid, 0)};
}

absl::Status CheckOwned(int fd, const std::string& shown) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return absl::ErrnoToStatus(errno, shown);
  if (status.st_uid != geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat(shown, " belongs to another user"));
  }
  if ((status.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(shown, " may be entered by others (chmod 700 it)"));
  }
  if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(shown, " cannot be written to"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FileDescriptor> OpenFormatDirectory(const std::string& root) {
  STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor directory,
                            OpenDirectoryAt(AT_FDCWD, root, WhenAbsent::kCreate));
  STEPWELL_RETURN_IF_ERROR(CheckOwned(directory.get(), root));
  absl::StatusOr<FileDescriptor> format =
      OpenDirectoryAt(directory.get(), spool::kFormatDirectory, WhenAbsent::kCreate);
  if (!format.ok()) return Annotate(format.status(), root);
  STEPWELL_RETURN_IF_ERROR(
      CheckOwned(format->get(), absl::StrCat(root, "/", spool::kFormatDirectory)));
  return format;
}

absl::StatusOr<AgentLock> AgentLock::Take(int format_directory, const Options& options) {
  const auto open = [&] {
    return OpenAt(format_directory, spool::kAgentLockFile, O_RDWR | O_CREAT);
  };
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor file, open());
  const SteadyTime deadline = SteadyTime::Now() + options.leaving_wait;
  while (true) {
    struct flock wanted = ByteLock(kServingByte, F_WRLCK);
    if (fcntl(file.get(), F_SETLK, &wanted) == 0) break;
    if (errno != EAGAIN && errno != EACCES) {
      return absl::ErrnoToStatus(errno, absl::StrCat("lock ", spool::kAgentLockFile));
    }
    const Holder holder = HolderOf(file.get(), kServingByte);
    const bool is_kept = holder.only_reads && options.is_public;
    const bool may_be_free_soon =
        !holder.is_there || is_kept || HolderOf(file.get(), kLeavingByte).is_there;
    if (!may_be_free_soon || deadline.HasPassed()) {
      return absl::AlreadyExistsError(
          absl::StrCat("another agent (process ", holder.pid, ") serves this directory"));
    }
    if (is_kept) {
      unlinkat(format_directory, spool::kAgentLockFile, 0);
      STEPWELL_ASSIGN_OR_RETURN(file, open());
    } else {
      absl::SleepFor(kLeavingPoll);
    }
  }
  // Not before it is locked: nobody else can be first.
  if (options.is_public && fchmod(file.get(), 0644) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("open ", spool::kAgentLockFile, " to all"));
  }
  return AgentLock(std::move(file));
}

absl::Status AgentLock::TakeLeaving() {
  struct flock leaving = ByteLock(kLeavingByte, F_WRLCK);
  if (fcntl(file_.get(), F_SETLK, &leaving) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("lock ", spool::kAgentLockFile));
}

void AgentLock::StopLeaving() {
  struct flock staying = ByteLock(kLeavingByte, F_UNLCK);
  fcntl(file_.get(), F_SETLK, &staying);
}

}  // namespace stepwell::agent
