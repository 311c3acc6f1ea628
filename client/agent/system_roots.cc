#include "client/agent/system_roots.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "client/recorder/src/spool_format.h"

namespace stepwell::agent {
namespace {

constexpr absl::Duration kLookInterval = absl::Seconds(1);
// All may make their own in it, none may list it or remove another's.
constexpr mode_t kSystemMode = 01733;
// The lock in it may be asked by all.
constexpr mode_t kFormatMode = 0755;
constexpr mode_t kCaptureMode = 0700;

absl::StatusOr<struct stat> StatusOf(int fd, const std::string& shown) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return absl::ErrnoToStatus(errno, shown);
  return status;
}

// Made by whoever came first: only ours will do.
absl::StatusOr<FileDescriptor> OpenOurs(int parent, const std::string& name, mode_t mode) {
  STEPWELL_ASSIGN_OR_RETURN(FileDescriptor directory,
                            OpenDirectoryAt(parent, name, WhenAbsent::kCreate));
  STEPWELL_ASSIGN_OR_RETURN(const struct stat status, StatusOf(directory.get(), name));
  if (status.st_uid != geteuid()) {
    return absl::PermissionDeniedError(
        absl::StrCat(name, " belongs to user ", status.st_uid, ": remove it"));
  }
  if ((status.st_mode & 07777) != mode && fchmod(directory.get(), mode) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("change the mode of ", name));
  }
  return directory;
}

std::optional<uid_t> UidOf(const std::string& name) {
  uid_t uid = 0;
  if (name.size() < 2 || name[0] != 'u' || !absl::SimpleAtoi(name.substr(1), &uid)) return {};
  if (absl::StrCat("u", uid) != name) return {};
  return uid;
}

absl::Status CheckUsers(const struct stat& status, uid_t uid, dev_t device) {
  if (status.st_uid != uid) {
    return absl::PermissionDeniedError(absl::StrCat("it belongs to user ", status.st_uid));
  }
  if ((status.st_mode & 077) != 0) {
    return absl::PermissionDeniedError("it may be entered by others (its user: chmod 700 it)");
  }
  // What a user mounted there may keep the agent waiting for ever.
  if (status.st_dev != device) return absl::PermissionDeniedError("it is another file system");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FileDescriptor> OpenSystemDirectory(const std::string& path) {
  return OpenOurs(AT_FDCWD, path, kSystemMode);
}

absl::StatusOr<FileDescriptor> OpenSystemFormatDirectory(int system_directory) {
  return OpenOurs(system_directory, spool::kFormatDirectory, kFormatMode);
}

absl::StatusOr<FileDescriptor> OpenCaptureDirectory(int system_format_directory,
                                                    const std::string& name) {
  return OpenOurs(system_format_directory, name, kCaptureMode);
}

std::vector<SystemRoots::Found> SystemRoots::FindNew() {
  std::vector<Found> all;
  const absl::Duration now = clock_.Monotonic();
  if (now - looked_at_ < kLookInterval) return all;
  looked_at_ = now;
  const absl::StatusOr<std::vector<std::string>> names = ListNames(directory_.get());
  if (!names.ok()) return all;
  for (const std::string& name : *names) {
    if (!UidOf(name) || known_.count(name) > 0) continue;
    if (known_.size() >= kRootsMax) {
      LogRefused("further users", absl::ResourceExhaustedError("too many are served"));
      break;
    }
    absl::StatusOr<Found> found = Look(name);
    // No format directory yet: its recorder is about to make it.
    if (absl::IsNotFound(found.status())) continue;
    if (!found.ok()) {
      LogRefused(name, found.status());
      continue;
    }
    refused_.erase(name);
    known_.insert(name);
    all.push_back(*std::move(found));
  }
  return all;
}

absl::StatusOr<SystemRoots::Found> SystemRoots::Look(const std::string& name) const {
  const uid_t uid = *UidOf(name);
  if (geteuid() != 0 && uid != geteuid()) {
    return absl::PermissionDeniedError("only root serves other users");
  }
  STEPWELL_ASSIGN_OR_RETURN(const struct stat ours, StatusOf(directory_.get(), "its parent"));
  STEPWELL_ASSIGN_OR_RETURN(const FileDescriptor root,
                            OpenDirectoryAt(directory_.get(), name, WhenAbsent::kFail));
  STEPWELL_ASSIGN_OR_RETURN(const struct stat status, StatusOf(root.get(), name));
  STEPWELL_RETURN_IF_ERROR(CheckUsers(status, uid, ours.st_dev));
  const FileOwner owner = {uid, status.st_gid};
  const ActAs acting(owner);
  STEPWELL_ASSIGN_OR_RETURN(
      FileDescriptor format,
      OpenDirectoryAt(root.get(), spool::kFormatDirectory, WhenAbsent::kFail));
  STEPWELL_ASSIGN_OR_RETURN(const struct stat inner, StatusOf(format.get(), name));
  STEPWELL_RETURN_IF_ERROR(CheckUsers(inner, uid, ours.st_dev));
  STEPWELL_ASSIGN_OR_RETURN(AgentLock lock,
                            AgentLock::Take(format.get(), {.leaving_wait = absl::ZeroDuration()}));
  return Found{name, owner, std::move(format), std::move(lock)};
}

// Once, until the reason is another.
void SystemRoots::LogRefused(const std::string& name, const absl::Status& why) {
  std::string text(why.message());
  // Anybody may make names: those beyond are refused without a word.
  if (refused_.size() >= 2 * kRootsMax && !refused_.contains(name)) return;
  if (std::string& told = refused_[name]; told != text) {
    log::Warning("user_refused", {{"root", name}, {"why", text}});
    told = std::move(text);
  }
}

}  // namespace stepwell::agent
