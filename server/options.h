// Options: what `stepwell serve` was told: a flag wins over the environment, that over the file, that
// over the default.
//
// Keys of the file (server/config_file.h) are the flags without dashes in front; durations are
// written "500ms" or "10s".
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "server/settings.h"

namespace stepwell {

// Wrong use: what to print and the exit status (64 for the command line, 78 for what is configured
// elsewhere).
struct UsageError {
  int exit_code = 64;
  std::string message;
};

struct ParsedOptions {
  ServeOptions options;
  bool print_config = false;
  bool dry_run = false;
  bool migrate_only = false;
  bool help = false;
};

// `arguments` without the program and subcommand. `environment` answers a variable or nothing;
// `read_file` the text of a file.
std::variant<ParsedOptions, UsageError> ParseOptions(
    const std::vector<std::string>& arguments,
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    const std::function<absl::StatusOr<std::string>(const std::string&)>& read_file);

// Every setting with its value, in the file's form.
std::string PrintConfig(const ServeOptions& options);
std::string HelpText();

}  // namespace stepwell
