// Sets variables and becomes the program: the same process, with its signals, terminal, files and exit
// code.
#include "client/cli/run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/shell_word.h"
#include "client/cli/options.h"
#include "client/cli/python_hooks.h"
#include "client/cli/run_token.h"
#include "client/cli/run_variables.h"
#include "client/cli/terminal.h"
#include "client/recorder/src/environment.h"
#include "nlohmann/json.hpp"

namespace stepwell::cli {
namespace {

constexpr char kExamples[] =
    "\nPROGRAM is started with the variables of these options (docs/environment.md), and takes the "
    "place of\n"
    "'stepwell run': the same process, with its signals, terminal and exit code. Options win over\n"
    "variables that are set; what is not given stays as it is. Options end at PROGRAM, or at "
    "'--'.\n"
    "A program records if it opens a recorder; its code wins over the variables that name and "
    "choose.\n"
    "With --trial-token, where STEPWELL_TOKEN may do more than ingest the trial that --trial "
    "names, the program\nhas a short-lived token of that trial in its place, which its agent "
    "renews, and "
    "cannot read with it; one that may\ndo no more goes with its trial, also to an agent that runs "
    "already. Without it the program has\n"
    "STEPWELL_TOKEN as it is, which an agent shows that it starts.\n"
    "A training in Python that imports torch needs no line of its own where the package stepwell "
    "is "
    "installed\n"
    "(docs/python.md says what is seen): PYTHONPATH is set, too.\n"
    "Exits as PROGRAM does; with 64 where an option is wrong, 126 where PROGRAM cannot be "
    "executed, and\n"
    "127 where there is none.\n"
    "\nExamples:\n"
    "  stepwell run --trial my-run ./train --epochs 3\n"
    "  stepwell run python train.py\n"
    "  stepwell run --trial my-run --interval 100ms --groups cpu,gpu -- ./train\n"
    "  stepwell run --offline --spool-dir ./recorded ./train\n"
    "  stepwell run --trial my-run --print ./train      what would be set\n";

// As shells have it.
constexpr int kExitNotExecutable = 126;
constexpr int kExitNoProgram = 127;

bool IsFile(const std::string& path) {
  struct stat found {};
  return stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

// Whether there is such a file, in spite of what exec said: a script's interpreter may be missing.
bool IsThere(const std::string& program) {
  if (program.find('/') != std::string::npos) return access(program.c_str(), F_OK) == 0;
  const char* path = std::getenv("PATH");
  if (path == nullptr || program.empty()) return false;
  for (const std::string& folder : std::vector<std::string>(absl::StrSplit(path, ':'))) {
    if (IsFile(absl::StrCat(folder.empty() ? "." : folder, "/", program))) return true;
  }
  return false;
}

// Why the program did not start, by the errno of exec.
int TellWhyNot(const std::string& program, int error, Streams streams) {
  streams.err << "stepwell run: ";
  if (const bool is_path = program.find('/') != std::string::npos;
      is_path ? error == ENOENT && !IsThere(program) : !IsThere(program)) {
    streams.err << "there is no program '" << program << "'" << (is_path ? "" : " on PATH") << "\n";
    return kExitNoProgram;
  }
  streams.err << "'" << program << "' cannot be executed: "
              << (error == ENOENT ? "the interpreter that it names is missing"
                                  : std::strerror(error))
              << "\n";
  return kExitNotExecutable;
}

// Returns where it failed alone.
int Become(std::vector<std::string> words, const RunVariables& variables, Streams streams) {
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), /*replace=*/1);
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  execvp(pointers[0], pointers.data());
  return TellWhyNot(words[0], errno, streams);
}

bool IsQuiet() {
  return recorder::IsSwitchedOn(recorder::EnvironmentOf(nullptr), "STEPWELL_QUIET");
}

// The program's own words follow: one line, and none where quiet is wanted.
void TellWhatIsNotSeen(const std::vector<std::string>& words, Streams streams) {
  if (IsQuiet()) return;
  if (const std::string remark = WhatIsNotSeen(words); !remark.empty()) {
    streams.err << "stepwell run: " << remark << "\n";
  }
}

int Print(const std::vector<std::string>& words, const RunVariables& variables, bool as_json,
          Streams streams) {
  if (as_json) {
    const nlohmann::json json = {{"program", words}, {"variables", variables}};
    streams.out << json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
    return kExitOk;
  }
  for (const auto& [name, value] : variables) {
    streams.out << name << "=" << ShellWord(value) << "\n";
  }
  return kExitOk;
}

// In place of the token that the program would have.
void TakeTokenOfTrial(const recorder::ProgramSurroundings& around, RunVariables& variables,
                      Streams streams) {
  RunToken token = FetchRunToken(around, variables);
  if (!token.text.empty()) {
    variables["STEPWELL_TOKEN"] = token.text;
    // Its agent may be there already, and have another; the program may name another trial, and a run within it others still.
    variables["STEPWELL_TRIAL_TOKEN"] = absl::StrCat(token.text, " ", token.trial);
  }
  if (!token.remark.empty() && !IsQuiet()) {
    streams.err << "stepwell run: " << Printable(token.remark) << "\n";
  }
}

}  // namespace

int RunProgram(const std::vector<std::string>& args, Streams streams) {
  CommandOptions options("run", "PROGRAM [ARGS...]", kExamples, CommandOptions::Asks::kNobody);
  AddRunOptions(options);
  if (std::optional<int> exit = options.Parse(SplitRunWords(args), streams)) return *exit;
  const recorder::ProgramSurroundings around =
      recorder::ReadProgramSurroundings(recorder::EnvironmentOf(nullptr));
  absl::StatusOr<RunVariables> variables = ReadRunVariables(options, around);
  if (!variables.ok()) return options.UsageError(variables.status(), streams);
  const std::vector<std::string>& words = options.arguments();
  if (options.Has("print")) return Print(words, *variables, options.json(), streams);
  if (variables->contains("PYTHONPATH")) TellWhatIsNotSeen(words, streams);
  if (options.Has("trial-token")) TakeTokenOfTrial(around, *variables, streams);
  return Become(words, *variables, streams);
}

}  // namespace stepwell::cli
