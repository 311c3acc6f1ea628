#include "client/cli/run_variables.h"

#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/server_address.h"
#include "base/status_macros.h"
#include "client/cli/python_hooks.h"
#include "client/recorder/src/catalog.h"
#include "client/recorder/src/exit_wait.h"
#include "client/recorder/src/sampled_names.h"
#include "client/recorder/src/sampling_wish.h"
#include "client/recorder/src/spool_format.h"
#include "client/recorder/src/spool_roots.h"

namespace stepwell::cli {
namespace {

using recorder::ProgramSurroundings;

// Of the wire contract, for names of trials, projects and attempts.
constexpr std::size_t kNameBytesMax = 256;
constexpr char kAgentVariable[] = "STEPWELL_AGENT";
constexpr char kMetricsAllowed[] = "system metrics with commas between; docs/metrics.md lists them";

// What is wrong with a value is what is allowed instead; "" = nothing.
using Check = std::string (*)(const std::string& value, const ProgramSurroundings& around);

struct Setting {
  const char* option;
  const char* placeholder;  // null: a flag, which sets `variable` to `value`
  const char* variable;
  const char* value;
  Check check;
  bool is_path;  // the program may change its directory before it opens its recorder
  const char* help;
};

bool IsName(const std::string& text) {
  return !text.empty() && text.size() <= kNameBytesMax && recorder::IsUtf8(text) &&
         std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return absl::ascii_iscntrl(c); });
}

std::string CheckTrial(const std::string& value, const ProgramSurroundings&) {
  std::int64_t id = 0;
  const bool is_number = absl::StartsWith(value, "id:");
  if (is_number ? absl::SimpleAtoi(value.substr(3), &id) && id > 0 : IsName(value)) return "";
  return "a name of 1 ... 256 bytes, or id: and a number from 1";
}

std::string CheckProject(const std::string& value, const ProgramSurroundings&) {
  const bool is_plain = std::all_of(value.begin(), value.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
  });
  return is_plain && IsName(value) ? "" : "1 ... 256 of A-Z, a-z, 0-9, '.', '_' and '-'";
}

std::string CheckName(const std::string& value, const ProgramSurroundings&) {
  return IsName(value) ? "" : "1 ... 256 bytes without control characters";
}

std::string CheckServer(const std::string& value, const ProgramSurroundings&) {
  return value == spool::kServerOffline || IsServerAddress(value) ? "" : "HOST:PORT, or offline";
}

std::string CheckInterval(const std::string& value, const ProgramSurroundings&) {
  return recorder::ParseIntervalUs(value) > 0 ? "" : "a duration such as 250ms, 10ms ... 1h";
}

std::string CheckExitWait(const std::string& value, const ProgramSurroundings&) {
  const auto asked = [&value](const char*) { return value.c_str(); };
  return !value.empty() && recorder::ExitWaitRemark(asked).empty() ? "" : "seconds, 0 ... 3600";
}

bool AreOf(std::span<const std::string_view> known, const std::string& value) {
  const std::vector<std::string> words = recorder::SplitWords(value);
  return !words.empty() && std::all_of(words.begin(), words.end(), [known](std::string_view word) {
    return std::find(known.begin(), known.end(), word) != known.end();
  });
}

std::string CheckGroups(const std::string& value, const ProgramSurroundings&) {
  if (AreOf(recorder::kSampledGroups, value)) return "";
  std::string groups;
  for (const std::string_view group : recorder::kSampledGroups) {
    groups += (groups.empty() ? "" : ", ") + std::string(group);
  }
  return "of " + groups + ", with commas between";
}

std::string CheckMetrics(const std::string& value, const ProgramSurroundings&) {
  return AreOf(recorder::kSampledMetrics, value) ? "" : kMetricsAllowed;
}

bool IsDirectory(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

std::string CheckSpool(const std::string& value, const ProgramSurroundings& around) {
  std::string path = recorder::MakeAbsolute(value, around.working_directory);
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  struct stat found {};
  const bool is_there = lstat(path.c_str(), &found) == 0;
  const bool can_be_made = !is_there && IsDirectory(path.substr(0, path.rfind('/') + 1));
  if (!value.empty() && (is_there ? S_ISDIR(found.st_mode) : can_be_made)) return "";
  return "a directory, or a name in one, where it is made";
}

std::string CheckAgent(const std::string& value, const ProgramSurroundings& around) {
  if (value == "off") return "";
  const bool is_there =
      !value.empty() &&
      !recorder::FindProgram({.root = {}, .programs = ListPrograms(value, around), .variables = {}})
           .empty();
  return is_there ? "" : "a program's path, a name on PATH, or off";
}

// In the order of the help.
constexpr Setting kSettings[] = {
    {"trial", "NAME", "STEPWELL_TRIAL", nullptr, CheckTrial, false,
     "the trial: a name, or id:7 (the job's, else one of its own)"},
    {"project", "P", "STEPWELL_PROJECT", nullptr, CheckProject, false, "of the trial (default)"},
    {"attempt-key", "KEY", "STEPWELL_ATTEMPT_KEY", nullptr, CheckName, false,
     "which start of the trial; the same for all of its ranks (the job's, else one of its own)"},
    {"server", "HOST:PORT", "STEPWELL_SERVER", nullptr, CheckServer, false,
     "the master, or offline (127.0.0.1:7817)"},
    {"offline", nullptr, "STEPWELL_OFFLINE", "1", nullptr, false,
     "send nothing; 'stepwell upload' does later"},
    {"interval", "TIME", "STEPWELL_INTERVAL", nullptr, CheckInterval, false,
     "between two samples of the machine: 250ms, 10ms ... 1h (1s)"},
    {"groups", "G,...", "STEPWELL_GROUPS", nullptr, CheckGroups, false,
     "sample only these metric groups: cpu, disk, gpu, memory, network (all)"},
    {"without", "METRIC,...", "STEPWELL_WITHOUT", nullptr, CheckMetrics, false,
     "not these system metrics"},
    {"with", "METRIC,...", "STEPWELL_WITH", nullptr, CheckMetrics, false,
     "these, which are taken on request only"},
    {"no-system-metrics", nullptr, "STEPWELL_SYSTEM_METRICS", "0", nullptr, false,
     "sample nothing of the machine"},
    {"traces", "DIR", "STEPWELL_TRACES", nullptr, CheckSpool, true,
     "record its spans as traces there; the master gets them, too"},
    {"spool-dir", "DIR", "STEPWELL_SPOOL_DIR", nullptr, CheckSpool, true,
     "where it records (below TMPDIR, else /tmp)"},
    {"agent", "PROGRAM", "STEPWELL_AGENT", nullptr, CheckAgent, false,
     "the agent's program, or off: start none (stepwell on PATH, else this one)"},
    {"exit-wait", "SECONDS", "STEPWELL_EXIT_WAIT", nullptr, CheckExitWait, false,
     "what its exit waits at most until all is stored: 0 ... 3600 (5)"},
    {"no-hooks", nullptr, "STEPWELL_HOOKS", "0", nullptr, false,
     "put nothing into a training in Python; see what it records itself"},
    {"disabled", nullptr, "STEPWELL_DISABLED", "1", nullptr, false, "record nothing at all"},
};

bool TakesValue(const std::string& word) {
  return std::any_of(std::begin(kSettings), std::end(kSettings), [&word](const Setting& setting) {
    return setting.placeholder != nullptr && word == absl::StrCat("--", setting.option);
  });
}

absl::StatusOr<std::string> ReadValue(const CommandOptions& options, const Setting& setting,
                                      const ProgramSurroundings& around) {
  if (setting.placeholder == nullptr) return setting.value;
  const std::string value = options.Text(setting.option);
  const std::string allowed = setting.check(value, around);
  if (!allowed.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", setting.option, " is '", value, "'; allowed: ", allowed));
  }
  return setting.is_path ? recorder::MakeAbsolute(value, around.working_directory) : value;
}

// Two options of which one would be of no use.
absl::Status CheckTogether(const CommandOptions& options) {
  const struct {
    const char* one;
    const char* other;
  } rows[] = {{"offline", "server"},
              {"no-system-metrics", "interval"},
              {"no-system-metrics", "groups"},
              {"no-system-metrics", "without"},
              {"no-system-metrics", "with"}};
  for (const auto& row : rows) {
    if (!options.Has(row.one) || !options.Has(row.other)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", row.other, " is of no use with --", row.one));
  }
  if (options.Has("project") && absl::StartsWith(options.Text("trial"), "id:")) {
    return absl::InvalidArgumentError("--project goes with a name; --trial is a number");
  }
  if (options.json() && !options.Has("print")) {
    return absl::InvalidArgumentError("--json goes with --print");
  }
  return absl::OkStatus();
}

// Variables that would make an option of no use.
void WinOver(const CommandOptions& options, const ProgramSurroundings& around,
             RunVariables& variables) {
  const struct {
    const char* option;
    const char* variable;
    const char* value;
  } rows[] = {{"server", "STEPWELL_OFFLINE", "0"},
              {"interval", "STEPWELL_SYSTEM_METRICS", "1"},
              {"groups", "STEPWELL_SYSTEM_METRICS", "1"},
              {"without", "STEPWELL_SYSTEM_METRICS", "1"},
              {"with", "STEPWELL_SYSTEM_METRICS", "1"}};
  for (const auto& row : rows) {
    const bool is_set = !recorder::ReadVariable(around.environment, row.variable).empty();
    if (options.Has(row.option) && is_set) variables.try_emplace(row.variable, row.value);
  }
}

// Where nobody names an agent, and a recorder would find none on PATH: this very program.
std::string OwnAgent(const ProgramSurroundings& around) {
  if (!recorder::ReadVariable(around.environment, kAgentVariable).empty()) return "";
  const auto find = [](std::vector<std::string> programs) {
    return recorder::FindProgram({.root = {}, .programs = std::move(programs), .variables = {}});
  };
  if (!find(ListPrograms("stepwell", around)).empty()) return "";
  return find({around.executable});
}

}  // namespace

void AddRunOptions(CommandOptions& options) {
  for (const Setting& setting : kSettings) {
    if (setting.placeholder == nullptr) {
      options.Flag(setting.option, setting.help);
    } else {
      options.Value(setting.option, setting.placeholder, setting.help);
    }
  }
  options.Flag("trial-token",
               "the program gets a short-lived token of its trial in place of STEPWELL_TOKEN");
  options.Flag("print", "print the variables that would be set; start nothing");
}

std::vector<std::string> SplitRunWords(const std::vector<std::string>& args) {
  std::vector<std::string> words;
  auto arg = args.begin();
  for (; arg != args.end() && *arg != "--" && arg->size() > 1 && arg->front() == '-'; ++arg) {
    words.push_back(*arg);
    // As one word: what follows an option is its value, whatever it looks like.
    if (!TakesValue(*arg)) continue;
    const auto next = std::next(arg);
    // The parser would take "--" for a value, and another word for the program.
    if (next == args.end() || *next == "--") return words;
    absl::StrAppend(&words.back(), "=", *next);
    arg = next;
  }
  if (arg != args.end() && *arg == "--") ++arg;
  words.emplace_back("--");
  words.insert(words.end(), arg, args.end());
  return words;
}

absl::StatusOr<RunVariables> ReadRunVariables(const CommandOptions& options,
                                              const ProgramSurroundings& around) {
  STEPWELL_RETURN_IF_ERROR(CheckTogether(options));
  RunVariables variables;
  for (const Setting& setting : kSettings) {
    if (!options.Has(setting.option)) continue;
    STEPWELL_ASSIGN_OR_RETURN(variables[setting.variable], ReadValue(options, setting, around));
  }
  WinOver(options, around, variables);
  if (std::string own = OwnAgent(around); !own.empty()) {
    variables.try_emplace(kAgentVariable, std::move(own));
  }
  if (!options.Has("no-hooks") && !options.Has("disabled")) {
    if (std::string path = HookedPythonPath(around); !path.empty()) {
      variables["PYTHONPATH"] = std::move(path);
    }
  }
  return variables;
}

}  // namespace stepwell::cli
