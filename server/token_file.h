// TokenFile: where the admin's token of a master lies that was told of no file: in its data directory, or, where its database is
// somebody else's, in its state directory. Such a master asks for tokens wherever it speaks TLS and asks for no certificates.
//
//   STEPWELL_ASSIGN_OR_RETURN(options.token_file, ChooseTokenFile(options, HomeOfProcess()));
#pragma once

#include <string>

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

}  // namespace stepwell
