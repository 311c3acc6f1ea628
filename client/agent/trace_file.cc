#include "client/agent/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace stepwell::agent {
namespace {

constexpr char kEnding[] = ".pftrace";
constexpr int kNamesMax = 10'000;

std::string UnfinishedStart(std::int32_t rank) { return absl::StrCat("recording-rank", rank, "-"); }

// Of a finished trace of that rank: other profilers name theirs likewise, with other endings.
bool IsFinished(const std::string& name, std::int32_t rank) {
  return absl::StartsWith(name, "ep") && absl::EndsWith(name, kEnding) &&
         absl::StrContains(name, absl::StrCat("-rank", rank, "."));
}

// What has the name `to` already stays (EEXIST). A link where the file system has some: that is never there in part.
bool MoveUnlessThere(int directory, const char* from, const char* to) {
  if (linkat(directory, from, directory, to, 0) == 0) {
    unlinkat(directory, from, 0);
    return true;
  }
  if (errno == EEXIST) {
    // Whoever was killed between the two calls above left both names.
    struct stat one {
    }, other{};
    const bool is_moved = fstatat(directory, from, &one, AT_SYMLINK_NOFOLLOW) == 0 &&
                          fstatat(directory, to, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
                          one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    errno = EEXIST;
    return is_moved && unlinkat(directory, from, 0) == 0;
  }
  // Others (FUSE, SMB, exFAT) have none, and old ones, or a container's filter of calls, not this either.
  if (renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return false;
  if (faccessat(directory, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return false;
  }
  return renameat(directory, from, directory, to) == 0;
}

struct Finished {
  std::string name;
  timespec changed = {};
};

}  // namespace

std::string TraceFile::NameOf(const Place& place, std::int32_t rank) {
  return absl::StrCat("ep", std::max<std::int64_t>(place.epoch, 0), "-ba", place.batch + 1, "-rank",
                      rank, kEnding);
}

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Create(Options options) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory,
                            OpenDirectoryAt(AT_FDCWD, options.directory, WhenAbsent::kCreate));
  for (int number = 0; number < kNamesMax; ++number) {
    std::string name = absl::StrCat(UnfinishedStart(options.rank), number, kEnding);
    absl::StatusOr<FileDescriptor> file =
        OpenAt(directory.get(), name, O_RDWR | O_CREAT | O_EXCL | O_APPEND, 0644);
    if (file.ok()) {
      // Until this process is over. Where there are no locks nobody adopts it.
      (void)flock(file->get(), LOCK_EX | LOCK_NB);
      return std::unique_ptr<TraceFile>(new TraceFile(std::move(options), std::move(directory),
                                                      *std::move(file), std::move(name)));
    }
    if (!absl::IsAlreadyExists(file.status())) return file.status();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(options.directory, " has ", kNamesMax, " unfinished recordings"));
}

bool TraceFile::IsUnfinishedName(const std::string& name, std::int32_t rank) {
  absl::string_view number = name;
  return absl::ConsumePrefix(&number, UnfinishedStart(rank)) &&
         absl::ConsumeSuffix(&number, kEnding) && !number.empty() && number.size() <= 5 &&
         std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
}

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Adopt(Options options,
                                                            const std::string& name) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory,
                            OpenDirectoryAt(AT_FDCWD, options.directory, WhenAbsent::kFail));
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor file, OpenAt(directory.get(), name, O_RDWR | O_APPEND));
  struct stat status {};
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return absl::UnavailableError(name + " is still written");
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": whether it is still written cannot be told: ", std::strerror(errno)));
  }
  if (fstat(file.get(), &status) != 0) return absl::ErrnoToStatus(errno, name);
  auto adopted = std::unique_ptr<TraceFile>(
      new TraceFile(std::move(options), std::move(directory), std::move(file), name));
  adopted->bytes_ = status.st_size;
  adopted->is_adopted_ = true;
  return adopted;
}

TraceFile::TraceFile(Options options, FileDescriptor directory, FileDescriptor file,
                     std::string name)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      file_(std::move(file)),
      name_(std::move(name)) {}

absl::Status TraceFile::Append(std::string_view packet) {
  const auto size = static_cast<std::int64_t>(packet.size());
  if (is_full_ || bytes_ + size > options_.bytes_max) {
    is_full_ = true;
    return absl::ResourceExhaustedError(
        absl::StrCat(name_, " has ", bytes_, " bytes, allowed are ", options_.bytes_max));
  }
  const ssize_t written = write(file_.get(), packet.data(), packet.size());
  if (written == static_cast<ssize_t>(packet.size())) {
    bytes_ += size;
    return absl::OkStatus();
  }
  const int error = written < 0 ? errno : ENOSPC;
  is_full_ = true;
  // What is no whole packet goes; where it stays, it is the end.
  (void)!ftruncate(file_.get(), bytes_);
  return absl::ResourceExhaustedError(absl::StrCat(name_, ": ", std::strerror(error)));
}

absl::StatusOr<std::string> TraceFile::Finish(const Place& place) {
  const std::string wanted = NameOf(place, options_.rank);
  for (int number = 1; number < kNamesMax; ++number) {
    const std::string name =
        number == 1 ? wanted
                    : absl::StrCat(wanted.substr(0, wanted.size() - std::strlen(kEnding)), ".",
                                   number, kEnding);
    if (MoveUnlessThere(directory_.get(), name_.c_str(), name.c_str())) {
      name_ = name;
      RemoveOlder();
      return name_;
    }
    if (errno != EEXIST) break;
  }
  return absl::UnavailableError(absl::StrCat(name_, ": ", std::strerror(errno)));
}

absl::StatusOr<std::string> TraceFile::Read(std::int64_t offset, std::size_t size) const {
  return ReadAt(file_.get(), static_cast<std::uint64_t>(offset), size);
}

void TraceFile::Remove() const { unlinkat(directory_.get(), name_.c_str(), 0); }

void TraceFile::RemoveOlder() const {
  const auto names = ListNames(directory_.get());
  if (options_.kept_max <= 0 || !names.ok()) return;
  std::vector<Finished> finished;
  for (const std::string& name : *names) {
    struct stat status {};
    if (!IsFinished(name, options_.rank) ||
        fstatat(directory_.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    if (is_adopted_ || name != name_) finished.push_back({name, status.st_mtim});
  }
  std::sort(finished.begin(), finished.end(), [](const Finished& a, const Finished& b) {
    return std::pair(a.changed.tv_sec, a.changed.tv_nsec) >
           std::pair(b.changed.tv_sec, b.changed.tv_nsec);
  });
  // The one that was just finished is one of them, and the newest, but where it was another's.
  const std::size_t others_max =
      static_cast<std::size_t>(options_.kept_max) - (is_adopted_ ? 0 : 1);
  for (std::size_t i = others_max; i < finished.size(); ++i) {
    unlinkat(directory_.get(), finished[i].name.c_str(), 0);
  }
}

}  // namespace stepwell::agent
