// Options: the settings of `stepwell serve`, in one table: flag, environment variable, key of the
// configuration file, kind, range, meaning. A flag wins over the environment, that over the file,
// that over the default.
//
// The file has one `key = value` per line, as TOML has: # begins a comment, text may stand in double
// quotes, durations are written "500ms" or "10s". Keys are the flags without dashes in front.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace stepwell {

struct ServeOptions {
  std::string config;
  std::string data_dir;
  std::string database_url;
  std::string grpc_listen;
  std::string http_listen;
  std::string ready_file;
  std::string master_id;
  std::string pg_bindir;
  std::string pg_user;
  bool insecure_allow_remote = false;
  absl::Duration group_linger;
  absl::Duration fold_interval;
  std::int64_t queue_bytes = 0;
  std::int64_t fold_bytes = 0;
  std::int64_t streams_max = 0;
  std::int64_t connections_per_address_max = 0;
  std::string log_format;
  std::string log_level;
};

struct Setting {
  const char* name;  // "group-linger": flag --group-linger, variable STEPWELL_GROUP_LINGER
  std::variant<std::string ServeOptions::*, bool ServeOptions::*, absl::Duration ServeOptions::*,
               std::int64_t ServeOptions::*>
      place;
  const char* initial;
  // Inclusive range of numbers; of durations in milliseconds. Allowed words of text, empty = any.
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::vector<std::string> words;
  const char* help;
};
const std::vector<Setting>& Settings();

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

// The known word with the fewest edits between, empty if none is near.
std::string NearestWord(absl::string_view word, const std::vector<std::string>& known);

}  // namespace stepwell
