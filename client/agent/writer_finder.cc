#include "client/agent/writer_finder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/agent/writer_lock.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

// Thirty labels of a KiB fit many times.
constexpr std::size_t kWriterJsonBytesMax = 256 << 10;
// Some megabytes of names. Further directories are looked at when some are gone.
constexpr std::size_t kNamesMax = 65'536;
constexpr std::chrono::seconds kDearInterval{1};

// Whether a process of it holds its lock. What cannot be told counts as living: it is looked at closer.
bool MayLive(int format_directory, const std::string& name) {
  const absl::StatusOr<FileDescriptor> directory =
      OpenDirectoryAt(format_directory, name, WhenAbsent::kFail);
  if (!directory.ok()) return !absl::IsNotFound(directory.status());
  const absl::StatusOr<WriterLock> lock = WriterLock::Open(directory->get());
  // A machine's sampler has none: it is the agent's own.
  if (!lock.ok()) return absl::IsResourceExhausted(lock.status());
  pid_t holder = 0;
  return lock->IsProcessAlive(holder) || lock->IsAnyWorkerAlive();
}

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

bool WriterFinder::MayHaveNew() {
  const bool has_changed = watch_.MayHaveChanged(format_directory_);
  look_again_ = look_again_ || has_changed;
  if (!is_dear_) return look_again_;
  return look_again_ && std::chrono::steady_clock::now() - listed_at_ >= kDearInterval;
}

std::vector<FoundWriter> WriterFinder::FindNew() {
  std::vector<FoundWriter> found;
  if (MayHaveNew()) List(found);
  GiveWaiting(found);
  return found;
}

std::vector<std::string> WriterFinder::ListUnknown() {
  std::vector<std::string> unknown;
  look_again_ = true;
  const int fd = openat(format_directory_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return unknown;
  DIR* listing = fdopendir(fd);
  if (listing == nullptr) {
    close(fd);
    return unknown;
  }
  look_again_ = false;
  const absl::Cleanup closer = [listing] { closedir(listing); };
  while (const dirent* entry = readdir(listing)) {
    std::string name = entry->d_name;
    if (!Uuid::FromText(name) || known_.contains(name) || waiting_.Contains(name)) continue;
    if (unknown.size() + waiting_.name_count() >= kNamesMax) {
      look_again_ = is_dear_ = true;
      LogCrowded();
      break;
    }
    unknown.push_back(std::move(name));
  }
  return unknown;
}

void WriterFinder::List(std::vector<FoundWriter>& found) {
  listed_at_ = std::chrono::steady_clock::now();
  is_dear_ = false;
  living_waiting_count_ = 0;
  const std::vector<std::string> unknown = ListUnknown();
  if (known_.size() + unknown.size() <= count_max_) {
    for (const std::string& name : unknown) Give(name, Seen::kNever, found);
    return;
  }
  std::vector<std::string> dead;
  for (const std::string& name : unknown) {
    if (!MayLive(format_directory_, name)) {
      dead.push_back(name);
    } else if (is_full()) {
      ++living_waiting_count_;
    } else {
      Give(name, Seen::kNever, found);
    }
  }
  for (const std::string& name : dead) waiting_.Add(name, {});
  if (living_waiting_count_ == 0) return;
  look_again_ = is_dear_ = true;
  LogCrowded();
}

void WriterFinder::GiveWaiting(std::vector<FoundWriter>& found) {
  // Places that are free belong to the living first.
  if (living_waiting_count_ > 0) return;
  while (!is_full()) {
    const std::optional<WaitingWriters::Taken> taken = waiting_.Take();
    if (!taken) return;
    const bool is_new = taken->state == AsideWriter::State::kNew;
    Give(taken->name, is_new ? Seen::kNever : Seen::kBefore, found);
  }
}

void WriterFinder::Give(const std::string& name, Seen seen, std::vector<FoundWriter>& found) {
  absl::StatusOr<FoundWriter> writer = Look(format_directory_, name, owner_);
  // No writer.json yet; no descriptors now.
  if (absl::IsNotFound(writer.status()) || absl::IsResourceExhausted(writer.status())) {
    look_again_ = true;
    return;
  }
  known_.insert(name);
  if (writer.ok()) {
    writer->is_back = seen == Seen::kBefore;
    found.push_back(*std::move(writer));
  } else {
    log::Warning("writer_refused_here",
                 {{"directory", name}, {"why", std::string(writer.status().message())}});
  }
}

void WriterFinder::LogCrowded() {
  if (absl::Now() - crowded_logged_ < absl::Minutes(1)) return;
  crowded_logged_ = absl::Now();
  log::Warning("writers_too_many", {{"served", known_.size()},
                                    {"waiting", living_waiting_count_ + waiting_.count()},
                                    {"why", "further ones wait until some have ended"}});
}

}  // namespace stepwell::agent
