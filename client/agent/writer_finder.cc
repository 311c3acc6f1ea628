#include "client/agent/writer_finder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

// Thirty labels of a KiB fit many times.
constexpr std::size_t kWriterJsonBytesMax = 256 << 10;

absl::StatusOr<FoundWriter> Look(int format_directory, const std::string& name, uid_t owner) {
  FoundWriter found;
  found.name = name;
  STEPWELL_ASSIGN_OR_RETURN(found.directory,
                            OpenDirectoryAt(format_directory, name, WhenAbsent::kFail));
  struct stat status {};
  if (fstat(found.directory.get(), &status) != 0 || status.st_uid != owner) {
    return absl::PermissionDeniedError("it belongs to another user");
  }
  struct stat format {};
  if (fstat(format_directory, &format) != 0 || format.st_dev != status.st_dev) {
    return absl::PermissionDeniedError("it lies on another file system");
  }
  STEPWELL_ASSIGN_OR_RETURN(
      const std::string json,
      ReadSmallFileAt(found.directory.get(), spool::kWriterFile, kWriterJsonBytesMax));
  STEPWELL_ASSIGN_OR_RETURN(found.identity, ParseWriterJson(json));
  if (found.identity.writer.ToText() != name) {
    return absl::InvalidArgumentError("writer.json names another writer");
  }
  return found;
}

}  // namespace

absl::StatusOr<FoundWriter> MakeWriterDirectory(int format_directory, WriterIdentity identity) {
  FoundWriter made;
  made.name = identity.writer.ToText();
  STEPWELL_ASSIGN_OR_RETURN(made.directory,
                            OpenDirectoryAt(format_directory, made.name, WhenAbsent::kCreate));
  const std::string draft = absl::StrCat(spool::kWriterFile, ".draft");
  STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor file,
                            OpenAt(made.directory.get(), draft, O_WRONLY | O_CREAT | O_EXCL));
  STEPWELL_RETURN_IF_ERROR(WriteAt(file.get(), 0, ToWriterJson(identity)));
  if (renameat(made.directory.get(), draft.c_str(), made.directory.get(), spool::kWriterFile) !=
      0) {
    return absl::ErrnoToStatus(errno, "rename writer.json");
  }
  made.identity = std::move(identity);
  return made;
}

// The kernel's clock for such times ticks each few milliseconds, so that a directory may change twice
// at one time: one that changed just now is listed again. So is one of the future, by a clock that
// was set.
bool WriterFinder::MayHaveNew() {
  struct stat status {};
  timespec now{};
  if (fstat(format_directory_, &status) != 0 || clock_gettime(CLOCK_REALTIME, &now) != 0) {
    return true;
  }
  const bool is_same =
      status.st_mtim.tv_sec == changed_.tv_sec && status.st_mtim.tv_nsec == changed_.tv_nsec;
  const bool is_settled = now.tv_sec - status.st_mtim.tv_sec > 1;
  changed_ = status.st_mtim;
  return look_again_ || !is_same || !is_settled;
}

std::vector<FoundWriter> WriterFinder::FindNew() {
  std::vector<FoundWriter> found;
  if (MayHaveNew()) List(found);
  return found;
}

void WriterFinder::List(std::vector<FoundWriter>& found) {
  look_again_ = true;
  const int fd = openat(format_directory_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  DIR* listing = fdopendir(fd);
  if (listing == nullptr) {
    close(fd);
    return;
  }
  look_again_ = false;
  const absl::Cleanup closer = [listing] { closedir(listing); };
  while (const dirent* entry = readdir(listing)) {
    const std::string name = entry->d_name;
    if (!Uuid::FromText(name) || known_.contains(name)) continue;
    // Those that are served make room when they have ended and their time is over.
    if (known_.size() >= count_max_) {
      look_again_ = true;
      LogCrowded();
      break;
    }
    absl::StatusOr<FoundWriter> writer = Look(format_directory_, name, owner_);
    // No writer.json yet; no descriptors now.
    if (absl::IsNotFound(writer.status()) || absl::IsResourceExhausted(writer.status())) {
      look_again_ = true;
      continue;
    }
    known_.insert(name);
    if (writer.ok()) {
      found.push_back(*std::move(writer));
    } else {
      log::Warning("writer_refused_here",
                   {{"directory", name}, {"why", std::string(writer.status().message())}});
    }
  }
}

void WriterFinder::LogCrowded() {
  if (absl::Now() - crowded_logged_ < absl::Minutes(1)) return;
  crowded_logged_ = absl::Now();
  log::Warning("writers_too_many",
               {{"served", known_.size()}, {"why", "further ones wait until some have ended"}});
}

}  // namespace stepwell::agent
