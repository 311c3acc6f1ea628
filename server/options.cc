#include "server/options.h"

#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/config_file.h"
#include "server/nearest_word.h"

namespace stepwell {
namespace {

constexpr int kExitUsage = 64;
constexpr int kExitConfig = 78;

std::vector<std::string> Names() {
  std::vector<std::string> names;
  for (const Setting& setting : Settings()) names.emplace_back(setting.name);
  names.emplace_back("help");
  names.emplace_back("print-config");
  names.emplace_back("dry-run");
  names.emplace_back("migrate-only");
  return names;
}

std::string UnknownText(const std::string& what, absl::string_view name,
                        const std::string& dashes) {
  const std::string nearest = NearestWord(name, Names());
  std::string text = absl::StrCat("unknown ", what, " '", dashes, name, "'");
  if (!nearest.empty()) absl::StrAppend(&text, "; did you mean '", dashes, nearest, "'?");
  return text;
}

// The flags as name → text; those that are no settings go into `parsed`.
std::optional<UsageError> ReadFlags(const std::vector<std::string>& arguments,
                                    std::map<std::string, std::string>& flags,
                                    ParsedOptions& parsed) {
  const std::map<std::string, bool ParsedOptions::*> modes = {
      {"help", &ParsedOptions::help},
      {"print-config", &ParsedOptions::print_config},
      {"dry-run", &ParsedOptions::dry_run},
      {"migrate-only", &ParsedOptions::migrate_only}};
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

// The file's lines by key; the last of a key counts.
std::optional<UsageError> ReadConfig(const std::string& path, const std::string& text,
                                     std::map<std::string, ConfigLine>& values) {
  auto lines = ReadConfigFile(text);
  if (!lines.ok()) {
    return UsageError{kExitConfig, absl::StrCat(path, ":", std::string(lines.status().message()))};
  }
  for (ConfigLine& line : *lines) {
    if (FindSetting(line.key) == nullptr || line.key == "config") {
      return UsageError{kExitConfig, absl::StrCat(path, ":", line.line_no, ": ",
                                                  UnknownText("key", line.key, ""))};
    }
    values[line.key] = std::move(line);
  }
  return std::nullopt;
}

}  // namespace

std::variant<ParsedOptions, UsageError> ParseOptions(
    const std::vector<std::string>& arguments,
    const std::function<std::optional<std::string>(const std::string&)>& environment,
    const std::function<absl::StatusOr<std::string>(const std::string&)>& read_file) {
  ParsedOptions parsed;
  std::map<std::string, std::string> flags;
  if (auto error = ReadFlags(arguments, flags, parsed)) return *error;
  std::map<std::string, ConfigLine> file;
  const auto config = flags.count("config") != 0 ? std::optional(flags["config"])
                                                 : environment(VariableOf("config"));
  if (config && !config->empty()) {
    const auto text = read_file(*config);
    if (!text.ok()) {
      return UsageError{kExitConfig,
                        absl::StrCat("--config: ", std::string(text.status().message()))};
    }
    if (auto error = ReadConfig(*config, *text, file)) return *error;
  }
  for (const Setting& setting : Settings()) {
    Set(setting, setting.initial, parsed.options);
    if (const auto line = file.find(setting.name); line != file.end()) {
      if (const Problem problem = Set(setting, line->second.value, parsed.options)) {
        return UsageError{kExitConfig, absl::StrCat(*config, ":", line->second.line_no, ": ",
                                                    setting.name, " ", *problem)};
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

}  // namespace stepwell
