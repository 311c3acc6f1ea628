#include "server/token_file.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace stepwell {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

absl::StatusOr<std::string> DirectoryOf(const ServeOptions& options, const TokenHome& home) {
  if (!options.data_dir.empty()) return options.data_dir;
  const std::string state = home.state_directories.substr(0, home.state_directories.find(':'));
  if (!options.database_url.empty() && absl::StartsWith(state, "/")) return state;
  return DefaultDataDirectory(home.facts);
}

}  // namespace

TokenHome HomeOfProcess() {
  return {.state_directories = Variable("STATE_DIRECTORY"),
          .facts = {.is_root = geteuid() == 0,
                    .xdg_data_home = Variable("XDG_DATA_HOME"),
                    .home = Variable("HOME")}};
}

absl::StatusOr<std::string> ChooseTokenFile(const ServeOptions& options, const TokenHome& home) {
  if (options.token_file == kNoTokenFile) return "";
  if (!options.token_file.empty()) return options.token_file;
  const bool asks_otherwise =
      options.tls_cert.empty() || !options.tls_client_ca.empty() || options.insecure_allow_remote;
  if (asks_otherwise) return "";
  const auto directory = DirectoryOf(options, home);
  if (!directory.ok()) {
    return absl::FailedPreconditionError(
        "no --token-file, and neither XDG_DATA_HOME nor HOME says where a token may be kept");
  }
  std::error_code error;
  return std::filesystem::absolute(*directory + "/token", error).string();
}

absl::Status MakeDirectoryOf(const std::string& token_file) {
  if (token_file.empty() || access(token_file.c_str(), F_OK) == 0) return absl::OkStatus();
  const std::string directory = std::filesystem::path(token_file).parent_path().string();
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(directory, ": ", error.message(),
                   "; the token of this master is to be kept there, which user id ", geteuid(),
                   " may not make: give --token-file"));
}

}  // namespace stepwell
