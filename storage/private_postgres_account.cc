#include "storage/private_postgres_account.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr std::size_t kLookupBytes = 16 * 1024;

std::optional<PostgresAccount> Lookup(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kLookupBytes);
  if (getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr) {
    return std::nullopt;
  }
  return PostgresAccount{.uid = entry.pw_uid, .gid = entry.pw_gid, .name = name};
}

// The child drops all supplementary groups, so only uid and gid count.
bool MayPass(const PostgresAccount& account, const struct stat& directory) {
  if (directory.st_uid == account.uid) return (directory.st_mode & S_IXUSR) != 0;
  if (directory.st_gid == account.gid) return (directory.st_mode & S_IXGRP) != 0;
  return (directory.st_mode & S_IXOTH) != 0;
}

}  // namespace

std::string AccountName(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kLookupBytes);
  if (getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return {};
  }
  return entry.pw_name;
}

absl::StatusOr<PostgresAccount> FindPostgresAccount(const std::string& user) {
  if (geteuid() != 0) {
    const std::string name = AccountName(geteuid());
    if (name.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("user id ", geteuid(),
                       " has no name on this system, and PostgreSQL needs one; add it to "
                       "/etc/passwd, or use an existing server with --database-url"));
    }
    if (!user.empty() && user != name) {
      return absl::FailedPreconditionError(absl::StrCat(
          "--pg-user ", user, ": only root can start PostgreSQL as another user than ", name));
    }
    return PostgresAccount{.uid = geteuid(), .gid = getegid(), .name = name};
  }
  auto account = Lookup(user.empty() ? "postgres" : user);
  if (!account.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(user.empty() ? "there is no user \"postgres\""
                                  : absl::StrCat("--pg-user: there is no user \"", user, "\""),
                     ", and PostgreSQL refuses to run as root; name another with --pg-user"));
  }
  if (account->uid == 0) {
    return absl::FailedPreconditionError("--pg-user: PostgreSQL refuses to run as root");
  }
  account->switch_user = true;
  return *account;
}

absl::Status CheckReachable(const PostgresAccount& account, const std::string& path) {
  std::filesystem::path walked;
  for (const auto& part : std::filesystem::absolute(path).lexically_normal()) {
    walked /= part;
    struct stat directory {};
    if (stat(walked.c_str(), &directory) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(walked.string(), ": ", std::strerror(errno)));
    }
    if (!S_ISDIR(directory.st_mode) || MayPass(account, directory)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "user ", account.name, " cannot pass through ", walked.string(), "; run `chmod o+x ",
        walked.string(), "`, choose another --data-dir, or name another user with --pg-user"));
  }
  return absl::OkStatus();
}

}  // namespace stepwell
