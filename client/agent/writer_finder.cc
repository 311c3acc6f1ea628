#include "client/agent/writer_finder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/log.h"
#include "base/process_secrets.h"
#include "base/status_macros.h"
#include "client/agent/writer_lock.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

// Thirty labels of a KiB fit many times.
constexpr std::size_t kWriterJsonBytesMax = 256 << 10;
// Some megabytes of names. Of those that are to wait, further ones do when some are gone.
constexpr std::size_t kNamesMax = 65'536;
// A second or two, once.
constexpr std::size_t kThoroughNamesMax = 1 << 20;
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

// Whether the process that records into this writer has another directory of it, and lives: this one is a
// copy then (a backup, an rsync), whose lock nobody holds and whose rings hold what the original's agent
// sends, too. By the lock of the original alone, where that is to be seen here. An agent of all users follows
// nobody's path: it may lead to a file system that hangs, and the others would wait.
bool IsCopyOfLiving(const WriterIdentity& identity, int directory) {
  if (identity.path.empty()) return false;
  const absl::StatusOr<FileDescriptor> original =
      OpenDirectoryAt(AT_FDCWD, identity.path, WhenAbsent::kFail);
  struct stat here {};
  struct stat there {};
  if (!original.ok() || fstat(directory, &here) != 0 || fstat(original->get(), &there) != 0 ||
      here.st_uid != there.st_uid || (here.st_dev == there.st_dev && here.st_ino == there.st_ino)) {
    return false;
  }
  const absl::StatusOr<WriterLock> lock = WriterLock::Open(original->get());
  pid_t holder = 0;
  return lock.ok() && (lock->IsProcessAlive(holder) || lock->IsAnyWorkerAlive());
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
  if (!found.identity.token.empty()) KeepMemoryPrivate();
  if (found.identity.writer.ToText() != name) {
    return absl::InvalidArgumentError("writer.json names another writer");
  }
  if (owner == geteuid() && IsCopyOfLiving(found.identity, found.directory.get())) {
    return absl::FailedPreconditionError(
        absl::StrCat("it is a copy of ", found.identity.path, ", whose process records"));
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
  if (is_thorough_) pass_.reset();
  if (!pass_ && (MayHaveNew() || is_thorough_)) Begin();
  if (is_thorough_) openings_left_ = SIZE_MAX;
  if (pass_ && GoOn(found)) End();
  GiveWaiting(found);
  if (std::exchange(is_thorough_, false)) Refill();
  return found;
}

void WriterFinder::Begin() {
  DirectoryListing listing(format_directory_);
  // No descriptors now, or it was removed: nobody is to be waited for.
  look_again_ = !listing.valid();
  has_looked_through_ = has_looked_through_ || look_again_;
  if (!listing.valid()) return;
  pass_.emplace(Pass{std::move(listing)});
  listed_at_ = std::chrono::steady_clock::now();
  is_dear_ = false;
}

bool WriterFinder::GoOn(std::vector<FoundWriter>& found) {
  while (true) {
    if (pass_->looked_count == pass_->unknown.size()) {
      if (pass_->listed) return true;
      pass_->unknown.clear();
      pass_->looked_count = 0;
    }
    if (pass_->looked_count == 0 && !List()) return false;
    if (!LookThrough(found)) return false;
  }
}

bool WriterFinder::List() {
  std::size_t names_left = is_thorough_ ? kThoroughNamesMax : kNamesReadMax;
  while (!pass_->listed && pass_->unknown.size() < kNamesMax && names_left > 0) {
    --names_left;
    const char* next = pass_->listing.Next();
    pass_->listed = next == nullptr;
    if (next == nullptr) break;
    std::string name = next;
    if (!Uuid::FromText(name) || known_.contains(name) || waiting_.Contains(name)) continue;
    pass_->unknown.push_back(std::move(name));
  }
  // Nobody waits for names without end, however thorough.
  if (is_thorough_ && !pass_->listed) pass_->listed = look_again_ = true;
  if (!pass_->listed && pass_->unknown.size() < kNamesMax) return false;
  pass_->is_crowded = !pass_->listed || known_.size() + pass_->unknown.size() > count_max_;
  return true;
}

bool WriterFinder::LookThrough(std::vector<FoundWriter>& found) {
  for (; pass_->looked_count < pass_->unknown.size(); ++pass_->looked_count) {
    const std::string& name = pass_->unknown[pass_->looked_count];
    // Listed twice, or made by this agent meanwhile.
    if (known_.contains(name) || waiting_.Contains(name)) continue;
    if (openings_left_ == 0) return false;
    --openings_left_;
    LookAt(name, found);
  }
  return true;
}

void WriterFinder::LookAt(const std::string& name, std::vector<FoundWriter>& found) {
  if (!pass_->is_crowded) {
    Give(name, Seen::kNever, found);
  } else if (!MayLive(format_directory_, name)) {
    Wait(name);
  } else if (is_full()) {
    living_waiting_count_ = std::max(living_waiting_count_, ++pass_->living_waiting_count);
  } else {
    Give(name, Seen::kNever, found);
  }
}

void WriterFinder::Wait(const std::string& name) {
  if (waiting_.name_count() < kNamesMax) return waiting_.Add(name, {});
  look_again_ = is_dear_ = true;
  LogCrowded();
}

void WriterFinder::End() {
  living_waiting_count_ = pass_->living_waiting_count;
  pass_.reset();
  has_looked_through_ = true;
  if (living_waiting_count_ == 0) return;
  look_again_ = is_dear_ = true;
  LogCrowded();
}

void WriterFinder::GiveWaiting(std::vector<FoundWriter>& found) {
  // Places that are free belong to the living first.
  if (living_waiting_count_ > 0 || pass_) return;
  while (!is_full() && openings_left_ > 0) {
    const std::optional<WaitingWriters::Taken> taken = waiting_.Take();
    if (!taken) return;
    --openings_left_;
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
  if (SteadyTime::Now() - crowded_logged_ < absl::Minutes(1)) return;
  crowded_logged_ = SteadyTime::Now();
  log::Warning("writers_too_many", {{"served", known_.size()},
                                    {"waiting", living_waiting_count_ + waiting_.count()},
                                    {"why", "further ones wait until some have ended"}});
}

}  // namespace stepwell::agent
