#include "client/cli/command.h"

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/nearest.h"
#include "client/cli/run.h"
#include "fmt/format.h"

namespace stepwell::cli {
namespace {

// What asks no master: listed here; main.cc hands all but `run` to the server or the agent.
constexpr Command kElsewhere[] = {
    {"run", "start a program, with options for what it records", nullptr},
    {"serve", "run the master (starts a private PostgreSQL if none is named)", nullptr},
    {"agent", "ship what this machine records to a master", nullptr},
    {"agent status", "what waits on this machine, and whether it is being shipped", nullptr},
    {"upload", "send what a spool directory still holds", nullptr},
};

std::vector<std::string> Words(const std::string& name) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t space = std::min(name.find(' ', at), name.size());
    words.push_back(name.substr(at, space - at));
    at = space + 1;
  }
  return words;
}

std::vector<std::string> KnownNames() {
  std::vector<std::string> names;
  for (const Command& command : kElsewhere) names.emplace_back(command.name);
  for (const Command& command : Commands()) names.emplace_back(command.name);
  return names;
}

// Of `given`, which is none.
std::string NoCommandText(const std::string& given) {
  const std::vector<std::string> names = KnownNames();
  const std::string meant = MeantText(given, {names.begin(), names.end()});
  return absl::StrCat("no command '", given, "'; ", meant, meant.empty() ? "" : " ",
                      "there are: ", absl::StrJoin(names, ", "));
}

// "admin" of "admin flush": commands that share a first word.
bool IsOfFamily(const Command& command, const std::string& family) {
  return absl::StartsWith(command.name, family + " ");
}

bool IsFamily(const std::string& word) {
  const std::vector<Command>& commands = Commands();
  return std::any_of(commands.begin(), commands.end(),
                     [&](const Command& command) { return IsOfFamily(command, word); });
}

// The help of `family` alone, which does nothing by itself.
std::string FamilyText(const std::string& family) {
  std::string text =
      absl::StrCat("Usage: stepwell ", family, " COMMAND [OPTION...]\n\nCommands:\n");
  std::string examples;
  for (const Command& command : Commands()) {
    if (!IsOfFamily(command, family)) continue;
    text += fmt::format("  {:<17}{}\n", command.name, command.summary);
    absl::StrAppend(&examples, "  stepwell ", command.name, command.arguments, "\n");
  }
  return absl::StrCat(text, "\nExamples:\n", examples, "\n`stepwell ", family,
                      " COMMAND --help` tells a command's options.\n");
}

bool IsHelp(const std::string& word) { return word == "--help" || word == "-h" || word == "help"; }

}  // namespace

const std::vector<Command>& Commands() {
  static const std::vector<Command> commands = {
      {"trials", "list trials, newest first", RunTrials},
      {"series", "list the series of a trial", RunSeries},
      {"read", "print raw samples of a trial", RunRead},
      {"report", "where a trial's time went, and what its machine did", RunReport},
      {"compare", "trials side by side: their scopes, then their metrics", RunCompare},
      {"export", "all raw samples of a trial, as CSV or JSON lines", RunExport},
      {"top", "the same of now, live: steps, machines, GPUs", RunTop},
      {"caps get", "how long and how much is kept, and who says so", RunCapsGet},
      {"caps set", "set how long and how much is kept", RunCapsSet},
      {"caps preview", "what a sweep would remove", RunCapsPreview},
      {"caps sweep", "remove now what the caps say", RunCapsSweep},
      {"admin flush", "make all acked samples visible in SQL", RunAdminFlush},
      {"admin profiling", "switch a trial's recording on or off, or thin it out", RunAdminProfiling,
       " my-run off"},
      {"admin status", "what the master is and how it does", RunAdminStatus},
      {"admin archive", "keep a trial from being written", RunAdminArchive, " my-run"},
      {"admin unarchive", "let it be written again", RunAdminUnarchive, " my-run"},
      {"admin delete", "delete a trial for good", RunAdminDelete, " my-run"},
      {"capture", "trace the next steps of running ranks", RunCapture},
      {"trace merge", "traces of ranks, cycles and profilers as one", RunTraceMerge,
       " traces/*.json --output merged.json.gz"},
      {"trace report", "where the steps of a native profiler's trace went", RunTraceReport,
       " rank0.pt.trace.json.gz"},
      {"trace import", "keep traces of a trial with the master", RunTraceImport,
       " my-run traces/*.json"},
      {"trace list", "the traces of a trial", RunTraceList, " my-run"},
      {"trace get", "traces of a trial as files, also as TensorBoard expects them", RunTraceGet,
       " my-run --tensorboard logs"},
      {"trace open", "traces of a trial in Perfetto's page", RunTraceOpen, " my-run"},
      {"trace delete", "delete one trace of a trial for good", RunTraceDelete, " my-run 3"},
      {"token create", "make a token that may do what you say, and no more", RunTokenCreate,
       " ci --grant write:vision"},
      {"token fetch", "a short-lived token of one trial, for whoever may write it", RunTokenFetch,
       " --trial vision/run-7"},
      {"token list", "what tokens there are, and when they were used", RunTokenList},
      {"token revoke", "end a token for good", RunTokenRevoke, " 5f0c21d3a9be"},
      {"tls init", "make a private CA, and certificates of a master and its clients", RunTlsInit,
       " certs --name master.lab"},
      {"version", "print the version", RunVersion},
  };
  return commands;
}

std::string OverviewText() {
  std::string text =
      "stepwell: where the time of a training run goes\n\n"
      "Usage: stepwell COMMAND [OPTION...]\n\nCommands:\n";
  for (const Command& command : kElsewhere) {
    text += fmt::format("  {:<17}{}\n", command.name, command.summary);
  }
  for (const Command& command : Commands()) {
    text += fmt::format("  {:<17}{}\n", command.name, command.summary);
  }
  text +=
      "\nExamples:\n"
      "  stepwell serve                     start a master on this machine\n"
      "  stepwell run --trial my-run ./train    record a run under that name\n"
      "  stepwell report my-run             where the time of my-run's steps went\n"
      "  stepwell compare old-run my-run    what changed between two runs\n"
      "  stepwell top                       the same of the newest running trial, live\n"
      "  stepwell read my-run --name loss   samples of one series\n"
      "\n`stepwell COMMAND --help` tells a command's options.\n"
      "Exit codes: 0 done, 1 not found or failed, 64 wrong use, 66 no such directory, 69 master "
      "not\n"
      "reachable, 75 run it again.\n";
  return text;
}

int RunCommandLine(const std::vector<std::string>& args, Streams streams) {
  if (args.empty()) {
    streams.err << OverviewText();
    return kExitUsage;
  }
  if (IsHelp(args[0])) {
    streams.out << OverviewText();
    return kExitOk;
  }
  if (args[0] == "--version") return RunVersion({}, streams);
  if (args[0] == "run") return RunProgram({args.begin() + 1, args.end()}, streams);
  for (const Command& command : Commands()) {
    const std::vector<std::string> words = Words(command.name);
    if (args.size() < words.size() || !std::equal(words.begin(), words.end(), args.begin())) {
      continue;
    }
    return command.run({args.begin() + static_cast<std::ptrdiff_t>(words.size()), args.end()},
                       streams);
  }
  std::string given = args[0];
  if (IsFamily(given)) {
    if (args.size() == 1) {
      streams.err << FamilyText(given);
      return kExitUsage;
    }
    if (IsHelp(args[1])) {
      streams.out << FamilyText(given);
      return kExitOk;
    }
    absl::StrAppend(&given, " ", args[1]);
  }
  streams.err << "stepwell: " << NoCommandText(given) << "\n";
  return kExitUsage;
}

}  // namespace stepwell::cli
