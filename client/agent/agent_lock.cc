#include "client/agent/agent_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

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

absl::StatusOr<AgentLock> AgentLock::Take(int format_directory) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor file,
                            OpenAt(format_directory, spool::kAgentLockFile, O_RDWR | O_CREAT));
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = 0;
  wanted.l_len = 1;
  if (fcntl(file.get(), F_SETLK, &wanted) == 0) return AgentLock(std::move(file));
  if (errno != EAGAIN && errno != EACCES) {
    return absl::ErrnoToStatus(errno, absl::StrCat("lock ", spool::kAgentLockFile));
  }
  struct flock holder = wanted;
  fcntl(file.get(), F_GETLK, &holder);
  return absl::AlreadyExistsError(
      absl::StrCat("another agent (process ", holder.l_pid, ") serves this directory"));
}

}  // namespace stepwell::agent
