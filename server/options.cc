#include "server/options.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

namespace stepwell {
namespace {

constexpr int kExitUsage = 64;
constexpr int kExitConfig = 78;

std::string VariableOf(absl::string_view name) {
  return absl::StrCat("STEPWELL_", absl::AsciiStrToUpper(absl::StrReplaceAll(name, {{"-", "_"}})));
}

const Setting* FindSetting(absl::string_view name) {
  for (const Setting& setting : Settings()) {
    if (setting.name == name) return &setting;
  }
  return nullptr;
}

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Setting& setting : Settings()) names.emplace_back(setting.name);
  names.emplace_back("help");
  names.emplace_back("print-config");
  names.emplace_back("dry-run");
  return names;
}

std::string UnknownText(const std::string& what, absl::string_view name,
                        const std::string& dashes) {
  const std::string nearest = NearestWord(name, Names());
  std::string text = absl::StrCat("unknown ", what, " '", dashes, name, "'");
  if (!nearest.empty()) absl::StrAppend(&text, "; did you mean '", dashes, nearest, "'?");
  return text;
}

using Problem = std::optional<std::string>;

Problem SetNumber(const Setting& setting, const std::string& text, std::int64_t& place) {
  if (absl::SimpleAtoi(text, &place) && place >= setting.min && place <= setting.max) return {};
  return absl::StrCat("is '", text, "', allowed are ", setting.min, " to ", setting.max);
}

Problem SetDuration(const Setting& setting, const std::string& text, absl::Duration& place) {
  if (absl::ParseDuration(text, &place) && place >= absl::Milliseconds(setting.min) &&
      place <= absl::Milliseconds(setting.max)) {
    return {};
  }
  return absl::StrCat("is '", text, "', allowed are durations from ",
                      absl::FormatDuration(absl::Milliseconds(setting.min)), " to ",
                      absl::FormatDuration(absl::Milliseconds(setting.max)));
}

Problem SetText(const Setting& setting, const std::string& text, std::string& place) {
  if (!setting.words.empty() &&
      std::find(setting.words.begin(), setting.words.end(), text) == setting.words.end()) {
    return absl::StrCat("is '", text, "', allowed are ", absl::StrJoin(setting.words, ", "));
  }
  place = text;
  return {};
}

Problem SetFlag(const std::string& text, bool& place) {
  if (text != "true" && text != "false") {
    return absl::StrCat("is '", text, "', allowed are true, false");
  }
  place = text == "true";
  return {};
}

// What is wrong with `text` for `setting`, nothing if it was set.
Problem Set(const Setting& setting, const std::string& text, ServeOptions& options) {
  if (const auto* number = std::get_if<std::int64_t ServeOptions::*>(&setting.place)) {
    return SetNumber(setting, text, options.**number);
  }
  if (const auto* duration = std::get_if<absl::Duration ServeOptions::*>(&setting.place)) {
    return SetDuration(setting, text, options.**duration);
  }
  if (const auto* flag = std::get_if<bool ServeOptions::*>(&setting.place)) {
    return SetFlag(text, options.**flag);
  }
  return SetText(setting, text, options.*std::get<std::string ServeOptions::*>(setting.place));
}

// The flags as name → text; those that are no settings go into `parsed`.
std::optional<UsageError> ReadFlags(const std::vector<std::string>& arguments,
                                    std::map<std::string, std::string>& flags,
                                    ParsedOptions& parsed) {
  const std::map<std::string, bool ParsedOptions::*> modes = {
      {"help", &ParsedOptions::help},
      {"print-config", &ParsedOptions::print_config},
      {"dry-run", &ParsedOptions::dry_run}};
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "-h") {
      parsed.help = true;
      continue;
    }
    if (!absl::StartsWith(argument, "--")) {
      return UsageError{kExitUsage, absl::StrCat("unexpected argument '", argument,
                                                 "'; settings are given as --name value")};
    }
    const auto equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (const auto mode = modes.find(name); mode != modes.end()) {
      parsed.*(mode->second) = true;
      continue;
    }
    const Setting* setting = FindSetting(name);
    if (setting == nullptr) return UsageError{kExitUsage, UnknownText("flag", name, "--")};
    if (equals != std::string::npos) {
      flags[name] = argument.substr(equals + 1);
    } else if (std::holds_alternative<bool ServeOptions::*>(setting->place)) {
      flags[name] = "true";
    } else if (i + 1 < arguments.size()) {
      flags[name] = arguments[++i];
    } else {
      return UsageError{kExitUsage, absl::StrCat("--", name, " needs a value: ", setting->help)};
    }
  }
  return std::nullopt;
}

std::string Unquoted(absl::string_view value) {
  value = absl::StripAsciiWhitespace(value);
  if (!value.empty() && value.front() == '"') {
    const auto end = value.find('"', 1);
    return std::string(value.substr(1, end == absl::string_view::npos ? end : end - 1));
  }
  return std::string(absl::StripAsciiWhitespace(value.substr(0, value.find('#'))));
}

std::optional<UsageError> ReadConfig(const std::string& path, const std::string& text,
                                     std::map<std::string, std::string>& values) {
  int line_no = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_no;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    const std::string place = absl::StrCat(path, ":", line_no, ": ");
    if (equals == absl::string_view::npos) {
      return UsageError{kExitConfig, absl::StrCat(place, "'", line, "' is not key = value")};
    }
    const std::string key(absl::StripAsciiWhitespace(line.substr(0, equals)));
    if (FindSetting(key) == nullptr || key == "config") {
      return UsageError{kExitConfig, absl::StrCat(place, UnknownText("key", key, ""))};
    }
    values[key] = Unquoted(line.substr(equals + 1));
  }
  return std::nullopt;
}

std::string ValueText(const Setting& setting, const ServeOptions& options) {
  if (const auto* number = std::get_if<std::int64_t ServeOptions::*>(&setting.place)) {
    return absl::StrCat(options.**number);
  }
  if (const auto* duration = std::get_if<absl::Duration ServeOptions::*>(&setting.place)) {
    return absl::StrCat("\"", absl::FormatDuration(options.**duration), "\"");
  }
  if (const auto* flag = std::get_if<bool ServeOptions::*>(&setting.place)) {
    return options.**flag ? "true" : "false";
  }
  return absl::StrCat("\"", options.*std::get<std::string ServeOptions::*>(setting.place), "\"");
}

}  // namespace

const std::vector<Setting>& Settings() {
  using O = ServeOptions;
  constexpr std::int64_t kMiB = 1 << 20;
  static const auto* settings = new std::vector<Setting>{
      {"config", &O::config, "", 0, 0, {}, "file with settings, one key = value per line"},
      {"data-dir",
       &O::data_dir,
       "",
       0,
       0,
       {},
       "directory of the private PostgreSQL; empty = /var/lib/stepwell for root, else"
       " $XDG_DATA_HOME/stepwell"},
      {"database-url",
       &O::database_url,
       "",
       0,
       0,
       {},
       "use this PostgreSQL instead of a private one: postgresql://user@host/database"},
      {"grpc-listen",
       &O::grpc_listen,
       "127.0.0.1:7817",
       0,
       0,
       {},
       "HOST:PORT for gRPC, port 0 = any free one"},
      {"http-listen",
       &O::http_listen,
       "127.0.0.1:7818",
       0,
       0,
       {},
       "HOST:PORT for HTTP, port 0 = any free one"},
      {"ready-file",
       &O::ready_file,
       "",
       0,
       0,
       {},
       "JSON with grpc, http, database_url and pid, written once ready"},
      {"master-id",
       &O::master_id,
       "",
       0,
       0,
       {},
       "who this master is; the same id takes its database over at once; empty = kept in the data"
       " directory, or machine id and grpc-listen"},
      {"pg-bindir",
       &O::pg_bindir,
       "",
       0,
       0,
       {},
       "where initdb and postgres of the private PostgreSQL are; empty = the newest installed"},
      {"pg-user",
       &O::pg_user,
       "",
       0,
       0,
       {},
       "system user of the private PostgreSQL when started by root; empty = postgres"},
      {"insecure-allow-remote",
       &O::insecure_allow_remote,
       "false",
       0,
       0,
       {},
       "listen on addresses that other machines reach, without authentication"},
      {"group-linger",
       &O::group_linger,
       "2ms",
       0,
       1000,
       {},
       "how long a commit group waits for company while the database is idle"},
      {"fold-interval",
       &O::fold_interval,
       "10s",
       10,
       600'000,
       {},
       "how often committed samples become rows that SQL sees"},
      {"queue-bytes",
       &O::queue_bytes,
       "67108864",
       kMiB,
       4096 * kMiB,
       {},
       "memory for chunks that wait for their commit"},
      {"fold-bytes",
       &O::fold_bytes,
       "33554432",
       kMiB,
       256 * kMiB,
       {},
       "unfolded memory that makes a fold start before its time"},
      {"streams-max", &O::streams_max, "256", 1, 4096, {}, "streams of agents at one time"},
      {"connections-per-address-max",
       &O::connections_per_address_max,
       "256",
       1,
       65536,
       {},
       "gRPC connections from one address at one time"},
      {"log-format", &O::log_format, "text", 0, 0, {"text", "json"}, "form of the log lines"},
      {"log-level",
       &O::log_level,
       "info",
       0,
       0,
       {"debug", "info", "warning", "error"},
       "the least that is logged"},
  };
  return *settings;
}

std::variant<ParsedOptions, UsageError> ParseOptions(
    const std::vector<std::string>& arguments,
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    const std::function<absl::StatusOr<std::string>(const std::string&)>& read_file) {
  ParsedOptions parsed;
  std::map<std::string, std::string> flags;
  if (auto error = ReadFlags(arguments, flags, parsed)) return *error;
  std::map<std::string, std::string> file;
  const auto config = flags.count("config") != 0 ? std::optional(flags["config"])
                                                 : environment(VariableOf("config"));
  if (config && !config->empty()) {
    const auto text = read_file(*config);
    if (!text.ok()) {
      return UsageError{kExitConfig, absl::StrCat("--config ", *config, ": ",
                                                  std::string(text.status().message()))};
    }
    if (auto error = ReadConfig(*config, *text, file)) return *error;
  }
  for (const Setting& setting : Settings()) {
    Set(setting, setting.initial, parsed.options);
    if (const auto place = file.find(setting.name); place != file.end()) {
      if (const Problem problem = Set(setting, place->second, parsed.options)) {
        return UsageError{kExitConfig, absl::StrCat(*config, ": ", setting.name, " ", *problem)};
      }
    }
    if (const auto value = environment(VariableOf(setting.name)); value && !value->empty()) {
      if (const Problem problem = Set(setting, *value, parsed.options)) {
        return UsageError{kExitConfig, absl::StrCat(VariableOf(setting.name), " ", *problem)};
      }
    }
    if (const auto place = flags.find(setting.name); place != flags.end()) {
      if (const Problem problem = Set(setting, place->second, parsed.options)) {
        return UsageError{kExitUsage, absl::StrCat("--", setting.name, " ", *problem)};
      }
    }
  }
  return parsed;
}

std::string PrintConfig(const ServeOptions& options) {
  std::string text = "# stepwell serve: every setting and its value. A file for --config.\n";
  for (const Setting& setting : Settings()) {
    const bool is_config = std::string(setting.name) == "config";
    absl::StrAppend(&text, "# ", setting.help, "\n", is_config ? "# " : "", setting.name, " = ",
                    ValueText(setting, options), "\n");
  }
  return text;
}

std::string HelpText() {
  std::string text =
      "Usage: stepwell serve [--name value]...\n"
      "Starts the master: a private PostgreSQL unless --database-url is given, gRPC and HTTP.\n\n"
      "Each setting may also stand in the environment or in the file of --config.\n\n";
  for (const Setting& setting : Settings()) {
    absl::StrAppendFormat(&text, "  --%-28s %s%s\n", setting.name, setting.help,
                          *setting.initial == '\0' ? "" : absl::StrCat(" (", setting.initial, ")"));
  }
  absl::StrAppend(
      &text,
      "  --print-config                 print every setting and its value, and exit\n"
      "  --dry-run                      list the migrations a start would apply, and exit\n"
      "  --help                         this text\n\n"
      "Examples:\n"
      "  stepwell serve\n"
      "  stepwell serve --data-dir /srv/stepwell --grpc-listen 127.0.0.1:0\n"
      "  stepwell serve --database-url postgresql://stepwell@db/stepwell\n\n"
      "Exit status: 0 stopped as asked, 64 wrong use, 70 internal error,\n"
      "78 something must be put right first (the message says what).\n");
  return text;
}

std::string NearestWord(absl::string_view word, const std::vector<std::string>& known) {
  std::string nearest;
  std::size_t fewest = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : known) {
    std::vector<std::size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= word.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t k = 1; k <= candidate.size(); ++k) {
        const std::size_t substituted = diagonal + (word[i - 1] == candidate[k - 1] ? 0 : 1);
        diagonal = row[k];
        row[k] = std::min({row[k] + 1, row[k - 1] + 1, substituted});
      }
    }
    if (row.back() < fewest) {
      fewest = row.back();
      nearest = candidate;
    }
  }
  return nearest;
}

}  // namespace stepwell
