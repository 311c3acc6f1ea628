#include "client/agent/trace_outbox.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/process_secrets.h"
#include "base/status_macros.h"
#include "base/uuid.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

// Agents of a version before them leave those alone.
constexpr char kRecordingEnding[] = ".recording";

// "stepwell-traces-x/NAME", where a path ends so; else empty.
absl::string_view TailInFolderOfOne(absl::string_view path) {
  const std::size_t name_at = path.rfind('/');
  if (name_at == path.npos || name_at == 0) return "";
  const absl::string_view name = path.substr(name_at + 1);
  const std::size_t one_at = path.rfind('/', name_at - 1);
  const absl::string_view tail = path.substr(one_at == path.npos ? 0 : one_at + 1);
  const bool is_name = !name.empty() && name != "." && name != "..";
  return is_name && absl::StartsWith(tail, TraceOutbox::kFolderOfOne) ? tail : "";
}

// By no link.
bool IsOf(const std::string& path, mode_t kind) {
  struct stat found {};
  return lstat(path.c_str(), &found) == 0 && (found.st_mode & S_IFMT) == kind;
}

// For certain: a file server that hesitates, or descriptors that are short, say nothing of it.
bool IsGone(const std::string& path) {
  struct stat found {};
  if (lstat(path.c_str(), &found) != 0) return errno == ENOENT || errno == ENOTDIR;
  return !S_ISREG(found.st_mode);
}

}  // namespace

absl::StatusOr<FileDescriptor> TraceOutbox::Folder() const {
  return OpenDirectoryAt(format_directory_, spool::kTraceFolder, WhenAbsent::kFail);
}

absl::Status TraceOutbox::Leave(const TraceJob& job) const {
  return Write(job, spool::kTraceNoteEnding).status();
}

absl::StatusOr<std::string> TraceOutbox::LeaveRecording(const TraceJob& job) const {
  return Write(job, kRecordingEnding);
}

absl::StatusOr<std::string> TraceOutbox::Write(const TraceJob& job, const char* ending) const {
  STEPWELL_ASSIGN_OR_RETURN(
      const FileDescriptor folder,
      OpenDirectoryAt(format_directory_, spool::kTraceFolder, WhenAbsent::kCreate));
  const std::string name = absl::StrCat(Uuid::Random().ToText(), ending);
  const std::string draft = absl::StrCat(name, ".draft");
  const auto write = [&]() -> absl::Status {
    STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor file,
                              OpenAt(folder.get(), draft, O_WRONLY | O_CREAT | O_EXCL));
    return WriteAt(file.get(), 0, ToTraceJobJson(job));
  };
  absl::Status written = write();
  if (written.ok() && renameat(folder.get(), draft.c_str(), folder.get(), name.c_str()) != 0) {
    written = absl::ErrnoToStatus(errno, absl::StrCat("rename ", draft));
  }
  if (written.ok()) return name;
  // It is tried again, perhaps for days.
  unlinkat(folder.get(), draft.c_str(), 0);
  return written;
}

absl::StatusOr<std::string> TraceOutbox::FolderPath() const {
  STEPWELL_ASSIGN_OR_RETURN(
      const FileDescriptor folder,
      OpenDirectoryAt(format_directory_, spool::kTraceFolder, WhenAbsent::kCreate));
  char path[PATH_MAX];
  const std::string link = absl::StrCat("/proc/self/fd/", folder.get());
  const ssize_t bytes = readlink(link.c_str(), path, sizeof(path));
  if (bytes <= 0 || bytes == sizeof(path) || path[0] != '/') {
    return absl::UnavailableError("the folder of traces has no path");
  }
  return std::string(path, static_cast<std::size_t>(bytes));
}

absl::StatusOr<std::string> TraceOutbox::KeepFile(const std::string& name,
                                                  std::string_view bytes) const {
  STEPWELL_ASSIGN_OR_RETURN(const std::string folder, FolderPath());
  const std::string own = absl::StrCat(folder, "/", kFolderOfOne, Uuid::Random().ToText());
  const std::string path = absl::StrCat(own, "/", name);
  const auto write = [&]() -> absl::Status {
    STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor directory,
                              OpenDirectoryAt(AT_FDCWD, own, WhenAbsent::kCreate));
    STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor file,
                              OpenAt(directory.get(), name, O_WRONLY | O_CREAT | O_EXCL));
    return WriteAt(file.get(), 0, bytes);
  };
  const absl::Status written = write();
  if (written.ok()) return path;
  unlink(path.c_str());
  rmdir(own.c_str());
  return written;
}

std::vector<std::string> TraceOutbox::OwnFolders(absl::Duration age) const {
  const absl::StatusOr<FileDescriptor> folder = Folder();
  if (!folder.ok()) return {};
  const absl::StatusOr<std::vector<std::string>> names = ListNames(folder->get());
  const absl::StatusOr<std::string> path = FolderPath();
  if (!names.ok() || !path.ok()) return {};
  const std::int64_t now_us = absl::ToUnixMicros(absl::Now());
  std::vector<std::string> found;
  for (const std::string& name : *names) {
    struct stat status {};
    if (!absl::StartsWith(name, kFolderOfOne) ||
        fstatat(folder->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(status.st_mode)) {
      continue;
    }
    if (now_us - absl::ToUnixMicros(absl::TimeFromTimespec(status.st_mtim)) >=
        absl::ToInt64Microseconds(age)) {
      found.push_back(absl::StrCat(*path, "/", name));
    }
  }
  return found;
}

TraceOutbox::Room TraceOutbox::RoomOfKept() const {
  Room room;
  struct statvfs found {};
  if (fstatvfs(format_directory_, &found) == 0) {
    room.free_bytes =
        static_cast<std::int64_t>(found.f_bavail) * static_cast<std::int64_t>(found.f_frsize);
  }
  for (const std::string& folder : OwnFolders()) {
    room.kept_bytes += kNoteBytesMax;
    const absl::StatusOr<FileDescriptor> opened =
        OpenDirectoryAt(AT_FDCWD, folder, WhenAbsent::kFail);
    if (!opened.ok()) continue;
    const absl::StatusOr<std::vector<std::string>> names = ListNames(opened->get());
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      struct stat status {};
      if (fstatat(opened->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) {
        room.kept_bytes += status.st_size;
      }
    }
  }
  return room;
}

bool TraceOutbox::Holds(const std::string& path) const {
  const absl::StatusOr<std::string> folder = FolderPath();
  const absl::string_view tail = TailInFolderOfOne(path);
  return folder.ok() && !tail.empty() && path == absl::StrCat(*folder, "/", tail) &&
         IsOf(absl::StrCat(*folder, "/", tail.substr(0, tail.find('/'))), S_IFDIR);
}

std::string TraceOutbox::Here(const std::string& path) const {
  const absl::StatusOr<std::string> folder = FolderPath();
  const absl::string_view tail = TailInFolderOfOne(path);
  if (!folder.ok() || tail.empty()) return path;
  const std::string here = absl::StrCat(*folder, "/", tail);
  return Holds(here) && IsOf(here, S_IFREG) ? here : path;
}

bool TraceOutbox::MayHaveNew() {
  // Opened each time: it may be another one than before.
  const absl::StatusOr<FileDescriptor> folder = Folder();
  return folder.ok() && watch_.MayHaveChanged(folder->get());
}

absl::StatusOr<std::vector<std::string>> TraceOutbox::Names() const {
  return NamesWith(spool::kTraceNoteEnding);
}

absl::StatusOr<std::vector<std::string>> TraceOutbox::Recordings() const {
  return NamesWith(kRecordingEnding);
}

absl::StatusOr<std::vector<std::string>> TraceOutbox::NamesWith(const char* ending) const {
  const absl::StatusOr<FileDescriptor> folder = Folder();
  // Nobody has left one yet.
  if (absl::IsNotFound(folder.status())) return std::vector<std::string>();
  if (!folder.ok()) return folder.status();
  const absl::StatusOr<std::vector<std::string>> names = ListNames(folder->get());
  if (!names.ok()) return names.status();
  std::vector<std::pair<std::pair<std::int64_t, std::int64_t>, std::string>> notes;
  for (const std::string& name : *names) {
    struct stat status {};
    if (!absl::EndsWith(name, ending) ||
        fstatat(folder->get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        S_ISDIR(status.st_mode)) {
      continue;
    }
    notes.push_back({{status.st_mtim.tv_sec, status.st_mtim.tv_nsec}, name});
  }
  std::sort(notes.begin(), notes.end());
  std::vector<std::string> sorted;
  for (auto& [time, name] : notes) sorted.push_back(std::move(name));
  return sorted;
}

absl::StatusOr<TraceJob> TraceOutbox::Read(const std::string& name) const {
  STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor folder, Folder());
  STEPWELL_ASSIGN_OR_RETURN(const std::string json,
                            ReadSmallFileAt(folder.get(), name, kNoteBytesMax));
  absl::StatusOr<TraceJob> job = ParseTraceJob(json);
  if (!job.ok()) return job;
  if (!job->writer.token.empty()) KeepMemoryPrivate();
  job->path = Here(job->path);
  return job;
}

absl::Status TraceOutbox::CheckFile(const std::string& path) const {
  struct stat own {};
  if (fstat(format_directory_, &own) != 0) return absl::ErrnoToStatus(errno, "the spool");
  const absl::StatusOr<FileDescriptor> file = OpenAt(AT_FDCWD, path, O_RDONLY);
  if (absl::IsInvalidArgument(file.status())) return file.status();
  if (!file.ok()) {
    struct stat link {};
    if (lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode)) {
      return absl::InvalidArgumentError(path + " is a link");
    }
    if (IsGone(path)) return absl::NotFoundError(file.status().message());
    // What may not be read is so in a minute, too; all else may be over then.
    return absl::IsPermissionDenied(file.status())
               ? absl::InvalidArgumentError(file.status().message())
               : absl::FailedPreconditionError(file.status().message());
  }
  struct stat found {};
  if (fstat(file->get(), &found) != 0) return absl::ErrnoToStatus(errno, path);
  if (!S_ISREG(found.st_mode)) return absl::InvalidArgumentError(path + " is no regular file");
  // Where a file server takes root for nobody, what root wrote is nobody's.
  if (found.st_uid == own.st_uid || (found.st_mode & S_IROTH) != 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " belongs to user ", found.st_uid, ", and not all may read it"));
}

void TraceOutbox::Remove(const std::string& name) const {
  const absl::StatusOr<FileDescriptor> folder = Folder();
  if (folder.ok()) unlinkat(folder->get(), name.c_str(), 0);
}

}  // namespace stepwell::agent
