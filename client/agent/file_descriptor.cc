#include "client/agent/file_descriptor.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

absl::Status FromErrno(int error, absl::string_view doing) {
  // A full disk is the caller's to wait for; the kernel's other words keep their usual code.
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(absl::StrCat(doing, ": ", std::string(strerror(error))));
  }
  return absl::ErrnoToStatus(error, doing);
}

}  // namespace

absl::StatusOr<FileDescriptor> OpenAt(int directory, const std::string& name, int flags,
                                      unsigned mode) {
  // Without waiting: a FIFO would, for whoever opens its other end.
  flags |= O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  FileDescriptor file(openat(directory, name.c_str(), flags, mode));
  // Another user's, and this process is not allowed to pass over that.
  if (!file.valid() && errno == EPERM && (flags & O_NOATIME) != 0) {
    file = FileDescriptor(openat(directory, name.c_str(), flags & ~O_NOATIME, mode));
  }
  if (!file.valid()) return FromErrno(errno, absl::StrCat("open ", name));
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return FromErrno(errno, absl::StrCat("look at ", name));
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no regular file"));
  }
  return file;
}

absl::StatusOr<FileDescriptor> OpenDirectoryAt(int directory, const std::string& name,
                                               WhenAbsent when_absent) {
  if (when_absent == WhenAbsent::kCreate && mkdirat(directory, name.c_str(), 0700) != 0 &&
      errno != EEXIST) {
    return FromErrno(errno, absl::StrCat("create directory ", name));
  }
  return OpenAt(directory, name, O_RDONLY | O_DIRECTORY);
}

absl::StatusOr<std::vector<std::string>> ListNames(int directory) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor own, OpenAt(directory, ".", O_RDONLY | O_DIRECTORY));
  DIR* listing = fdopendir(own.get());
  if (listing == nullptr) return FromErrno(errno, "list directory");
  (void)own.Release();
  const absl::Cleanup closer = [listing] { closedir(listing); };
  std::vector<std::string> names;
  while (const dirent* entry = readdir(listing)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  return names;
}

void RemoveTree(int directory, const std::string& name, int depth_max) {
  if (unlinkat(directory, name.c_str(), 0) == 0 || depth_max == 0) return;
  {
    const absl::StatusOr<FileDescriptor> folder =
        OpenDirectoryAt(directory, name, WhenAbsent::kFail);
    if (!folder.ok()) return;
    const absl::StatusOr<std::vector<std::string>> inner = ListNames(folder->get());
    if (!inner.ok()) return;
    for (const std::string& each : *inner) RemoveTree(folder->get(), each, depth_max - 1);
  }
  unlinkat(directory, name.c_str(), AT_REMOVEDIR);
}

absl::StatusOr<std::size_t> ReadInto(int fd, std::uint64_t offset, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FromErrno(errno, "read");
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

absl::StatusOr<std::string> ReadAt(int fd, std::uint64_t offset, std::size_t size) {
  std::string bytes(size, '\0');
  STEPWELL_ASSIGN_OR_RETURN(const std::size_t got,
                            ReadInto(fd, offset, std::as_writable_bytes(std::span(bytes))));
  bytes.resize(got);
  return bytes;
}

absl::Status WriteAt(int fd, std::uint64_t offset, std::string_view bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote =
        pwrite(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return FromErrno(errno, "write");
    done += static_cast<std::size_t>(wrote);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadSmallFileAt(int directory, const std::string& name,
                                            std::size_t size_max) {
  STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor file,
                            OpenAt(directory, name, O_RDONLY | O_NONBLOCK));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(name, " is no regular file"));
  }
  // As much as there is, not as much as there may be, which is 48 MiB of a segment.
  // Files of the kernel do not say how long they are.
  std::size_t room = static_cast<std::size_t>(status.st_size) + 4096;
  std::string bytes;
  while (true) {
    room = std::min(room, size_max + 1);
    STEPWELL_ASSIGN_OR_RETURN(bytes, ReadAt(file.get(), 0, room));
    if (bytes.size() < room || room > size_max) break;
    room *= 2;
  }
  if (bytes.size() > size_max) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has more than ", size_max, " bytes"));
  }
  return bytes;
}

}  // namespace stepwell::agent
