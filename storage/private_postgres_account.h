// PostgresAccount: the operating system user that the private server runs as, and whether that
// user can reach a directory.
#pragma once

#include <sys/types.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace stepwell {

struct PostgresAccount {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name = {};
  // True when this process must become that user; it is root then.
  bool switch_user = false;
};

// `user` empty: "postgres" when we are root, else ourselves. As an ordinary user only our own name
// is allowed. kFailedPrecondition says what to do.
absl::StatusOr<PostgresAccount> FindPostgresAccount(const std::string& user);

// Name of a uid, empty when the system knows none.
std::string AccountName(uid_t uid);

// kFailedPrecondition names the first directory on the way to `path`, itself included, that the
// account may not pass through.
absl::Status CheckReachable(const PostgresAccount& account, const std::string& path);

}  // namespace stepwell
