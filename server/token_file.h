// TokenFile: the file with the admin's token: how it is made and read, and where it lies of a master that was told of none: in
// its data directory, or, where its database is somebody else's, in its state directory. Such a master asks for tokens wherever
// it speaks TLS and asks for no certificates.
//
//   STEPWELL_ASSIGN_OR_RETURN(options.token_file, ChooseTokenFile(options, HomeOfProcess()));
//   STEPWELL_ASSIGN_OR_RETURN(const StoredToken stored, ReadTokenFile(options.token_file));
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/master_identity.h"
#include "server/settings.h"

namespace stepwell {

// Says that nobody is asked for a token. A file of that name is "./none".
inline constexpr char kNoTokenFile[] = "none";

// Where this process keeps what it keeps.
struct TokenHome {
  // systemd's STATE_DIRECTORY: several with colons between them. Empty = not set.
  std::string state_directories = {};
  HomeFacts facts = {};
};
TokenHome HomeOfProcess();

// What --token-file names; without it DIRECTORY/token, or "" where nobody is asked: without --tls-cert, with --tls-client-ca
// and with --insecure-allow-remote. Makes nothing. kFailedPrecondition: there is no home to keep one in.
absl::StatusOr<std::string> ChooseTokenFile(const ServeOptions& options, const TokenHome& home);

// Makes the directory of a file that is not there yet. kFailedPrecondition: it cannot be made.
absl::Status MakeDirectoryOf(const std::string& token_file);

// Where there is none, with a new token and of mode 0600: under its name only when it is whole; of two that begin at once
// one wins. False: there is one. kFailedPrecondition: none can be made.
absl::StatusOr<bool> MakeTokenFile(const std::string& path);

struct StoredToken {
  std::string digest;
  std::string stamp;  // of the file that it was read from
};
// kNotFound: it is not there, or may not be read by us any more; kFailedPrecondition: others than its owner may read it, or it
// holds no token. Both tell of the file, and whoever made it so means it. kUnavailable tells nothing of it: no descriptor or
// memory was left, or a disk did not answer.
absl::StatusOr<StoredToken> ReadTokenFile(const std::string& path);

}  // namespace stepwell
