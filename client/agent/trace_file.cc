#include "client/agent/trace_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/uuid.h"

namespace stepwell::agent {
namespace {

constexpr char kEnding[] = ".pftrace";
constexpr int kNamesMax = 10'000;
constexpr std::int64_t kBegunSeconds = 60;

std::string UnfinishedStart(std::int32_t rank) { return absl::StrCat("recording-rank", rank, "-"); }

// Of a finished trace of that rank: other profilers name theirs likewise, with other endings.
bool IsFinished(const std::string& name, std::int32_t rank) {
  return absl::StartsWith(name, "ep") && absl::EndsWith(name, kEnding) &&
         absl::StrContains(name, absl::StrCat("-rank", rank, "."));
}

// Of no step: what followed the last one, where another agent went on. It takes no other's place.
bool IsStepless(const std::string& name) { return absl::StrContains(name, "-ba0-"); }

enum class Named { kNot, kBoth, kMoved };

bool LacksSuchCalls(int error) { return error == EINVAL || error == ENOSYS || error == EPERM; }

// In one step, in which what has the name `to` already stays (EEXIST). A link where the file system has some: that is never
// there in part, and the file has both names then.
Named NameAtOnce(int directory, const char* from, const char* to) {
  if (linkat(directory, from, directory, to, 0) == 0) return Named::kBoth;
  if (errno == EEXIST) {
    // Whoever was killed before it had taken the old name left both.
    struct stat one {
    }, other{};
    const bool is_same = fstatat(directory, from, &one, AT_SYMLINK_NOFOLLOW) == 0 &&
                         fstatat(directory, to, &other, AT_SYMLINK_NOFOLLOW) == 0 &&
                         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
    errno = EEXIST;
    return is_same ? Named::kBoth : Named::kNot;
  }
  // Others (FUSE, SMB, exFAT) have none, and old ones, or a container's filter of calls, not this either.
  return renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0 ? Named::kMoved
                                                                          : Named::kNot;
}

// Likewise, and where there is no such step in two.
Named GiveName(int directory, const char* from, const char* to) {
  const Named named = NameAtOnce(directory, from, to);
  if (named != Named::kNot || !LacksSuchCalls(errno)) return named;
  if (faccessat(directory, to, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    errno = EEXIST;
    return Named::kNot;
  }
  return renameat(directory, from, directory, to) == 0 ? Named::kMoved : Named::kNot;
}

// Anything else than that it is not there, or no file.
absl::Status NotOpened(const absl::Status& failed) {
  if (absl::IsNotFound(failed) || absl::IsInvalidArgument(failed)) return failed;
  return absl::FailedPreconditionError(failed.message());
}

// Whoever made it locks it next, where its file system could not do both at once.
bool IsJustBegun(const struct stat& status) {
  return status.st_size == 0 && time(nullptr) - status.st_mtim.tv_sec < kBegunSeconds;
}

struct Begun {
  FileDescriptor file;
  std::string name;
};

// Locked until this process is over. Where there are no locks nobody adopts it.
absl::StatusOr<FileDescriptor> MakeLocked(int directory, const std::string& name) {
  absl::StatusOr<FileDescriptor> file =
      OpenAt(directory, name, O_RDWR | O_CREAT | O_EXCL | O_APPEND, 0644);
  if (file.ok()) (void)flock(file->get(), LOCK_EX | LOCK_NB);
  return file;
}

// It is locked before it has a name that another agent looks for, where that can be.
absl::StatusOr<Begun> BeginFile(int directory, std::int32_t rank) {
  const std::string draft = absl::StrCat(".", UnfinishedStart(rank), Uuid::Random().ToText());
  const absl::Cleanup remover = [&] { unlinkat(directory, draft.c_str(), 0); };
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor file, MakeLocked(directory, draft));
  for (int number = 0; number < kNamesMax; ++number) {
    std::string name = absl::StrCat(UnfinishedStart(rank), number, kEnding);
    if (NameAtOnce(directory, draft.c_str(), name.c_str()) != Named::kNot) {
      return Begun{std::move(file), std::move(name)};
    }
    if (errno == EEXIST) continue;
    if (!LacksSuchCalls(errno)) return absl::ErrnoToStatus(errno, name);
    absl::StatusOr<FileDescriptor> made = MakeLocked(directory, name);
    if (made.ok()) return Begun{*std::move(made), std::move(name)};
    if (!absl::IsAlreadyExists(made.status())) return made.status();
  }
  return absl::ResourceExhaustedError(absl::StrCat("has ", kNamesMax, " unfinished recordings"));
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
  absl::StatusOr<Begun> begun = BeginFile(directory.get(), options.rank);
  if (absl::IsResourceExhausted(begun.status())) {
    return absl::ResourceExhaustedError(
        absl::StrCat(options.directory, ": ", begun.status().message()));
  }
  if (!begun.ok()) return begun.status();
  return std::unique_ptr<TraceFile>(new TraceFile(std::move(options), std::move(directory),
                                                  std::move(begun->file), std::move(begun->name)));
}

bool TraceFile::IsUnfinishedName(const std::string& name, std::int32_t rank) {
  absl::string_view number = name;
  return absl::ConsumePrefix(&number, UnfinishedStart(rank)) &&
         absl::ConsumeSuffix(&number, kEnding) && !number.empty() && number.size() <= 5 &&
         std::all_of(number.begin(), number.end(), absl::ascii_isdigit);
}

absl::StatusOr<std::unique_ptr<TraceFile>> TraceFile::Adopt(Options options,
                                                            const std::string& name) {
  absl::StatusOr<FileDescriptor> directory =
      OpenDirectoryAt(AT_FDCWD, options.directory, WhenAbsent::kFail);
  // As before its disk is mounted: that says nothing of the file.
  if (!directory.ok()) return absl::FailedPreconditionError(directory.status().message());
  absl::StatusOr<FileDescriptor> file = OpenAt(directory->get(), name, O_RDWR | O_APPEND);
  if (!file.ok()) return NotOpened(file.status());
  if (flock(file->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return absl::UnavailableError(name + " is still written");
    return absl::FailedPreconditionError(
        absl::StrCat(name, ": whether it is still written cannot be told: ", std::strerror(errno)));
  }
  struct stat status {};
  if (fstat(file->get(), &status) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(name, ": ", std::strerror(errno)));
  }
  if (IsJustBegun(status)) return absl::UnavailableError(name + " is just begun");
  auto adopted = std::unique_ptr<TraceFile>(
      new TraceFile(std::move(options), *std::move(directory), *std::move(file), name));
  // Whoever wrote it may have finished it since it was opened.
  STEPWELL_RETURN_IF_ERROR(adopted->CheckName());
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

absl::Status TraceFile::CheckName() const {
  struct stat own {
  }, named{};
  const bool is_known = fstat(file_.get(), &own) == 0 &&
                        fstatat(directory_.get(), name_.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0;
  if (!is_known && errno != ENOENT) {
    return absl::FailedPreconditionError(absl::StrCat(name_, ": ", std::strerror(errno)));
  }
  if (is_known && own.st_dev == named.st_dev && own.st_ino == named.st_ino) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(name_, " is gone, or another one by now"));
}

absl::StatusOr<std::string> TraceFile::Finish(const Place& place, const LeaveWord& leave) {
  STEPWELL_RETURN_IF_ERROR(CheckName());
  const std::string wanted = NameOf(place, options_.rank);
  for (int number = 1; number < kNamesMax; ++number) {
    const std::string name =
        number == 1 ? wanted
                    : absl::StrCat(wanted.substr(0, wanted.size() - std::strlen(kEnding)), ".",
                                   number, kEnding);
    const Named named = GiveName(directory_.get(), name_.c_str(), name.c_str());
    if (named == Named::kNot && errno == EEXIST) continue;
    if (named == Named::kNot) break;
    if (const absl::Status left = leave(name); !left.ok()) {
      if (named == Named::kMoved) (void)GiveName(directory_.get(), name.c_str(), name_.c_str());
      return left;
    }
    if (named == Named::kBoth) unlinkat(directory_.get(), name_.c_str(), 0);
    name_ = name;
    RemoveOlder();
    return name_;
  }
  return absl::FailedPreconditionError(absl::StrCat(name_, ": ", std::strerror(errno)));
}

absl::StatusOr<std::string> TraceFile::Read(std::int64_t offset, std::size_t size) const {
  return ReadAt(file_.get(), static_cast<std::uint64_t>(offset), size);
}

void TraceFile::Remove() const {
  if (CheckName().ok()) unlinkat(directory_.get(), name_.c_str(), 0);
}

void TraceFile::RemoveOlder() const {
  const auto names = ListNames(directory_.get());
  if (options_.kept_max <= 0 || !names.ok()) return;
  std::vector<Finished> finished;
  for (const std::string& name : *names) {
    struct stat status {};
    if (!IsFinished(name, options_.rank) || IsStepless(name) != IsStepless(name_) ||
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
