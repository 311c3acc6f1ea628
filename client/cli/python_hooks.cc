#include "client/cli/python_hooks.h"

#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace stepwell::cli {
namespace {

constexpr char kFolder[] = "/share/stepwell/python";
constexpr char kFile[] = "/sitecustomize.py";

// PREFIX/bin/stepwell -> PREFIX/share/stepwell/python
std::string Folder(const std::string& executable) {
  const std::string bin = executable.substr(0, executable.rfind('/') + 1);
  if (bin.size() < 2) return "";
  const std::size_t slash = bin.rfind('/', bin.size() - 2);
  return slash == std::string::npos ? "" : bin.substr(0, slash) + kFolder;
}

std::string BaseName(const std::string& word) { return word.substr(word.rfind('/') + 1); }

// python, python3, python3.11, pypy3
bool IsPython(std::string_view name) {
  const std::size_t stem = name.starts_with("python") ? 6 : name.starts_with("pypy") ? 4 : 0;
  return stem > 0 && std::all_of(name.begin() + stem, name.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || c == '.';
         });
}

// The letter of -I, -S or -E among the interpreter's own options; 0 = none of them.
char BlindOption(const std::vector<std::string>& words) {
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-' || word[1] == '-') return 0;
    for (std::size_t at = 1; at < word.size(); ++at) {
      const char letter = word[at];
      if (letter == 'I' || letter == 'S' || letter == 'E') return letter;
      if (letter == 'c' || letter == 'm') return 0;  // the rest is the program's
      if (letter != 'W' && letter != 'X') continue;
      if (at + 1 == word.size()) ++i;  // its value is the next word
      break;
    }
  }
  return 0;
}

// Programs that start others in an environment that is not theirs.
bool IsElsewhere(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "ssh",       "pdsh",        "clush",  "docker",  "podman",    "kubectl",    "sudo",  "su",
      "apptainer", "singularity", "mpirun", "mpiexec", "deepspeed", "horovodrun", "sbatch"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::string HookedPythonPath(const recorder::ProgramSurroundings& around) {
  const std::string folder = Folder(around.executable);
  struct stat found {};
  if (folder.empty() || stat((folder + kFile).c_str(), &found) != 0) return "";
  const std::string before = recorder::ReadVariable(around.environment, "PYTHONPATH");
  // Of a `stepwell run` around this one.
  if (before == folder || absl::StartsWith(before, folder + ":")) return before;
  return before.empty() ? folder : absl::StrCat(folder, ":", before);
}

std::string WhatIsNotSeen(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  const std::string name = BaseName(words[0]);
  if (IsPython(name)) {
    const char letter = BlindOption(words);
    if (letter == 0) return "";
    return absl::StrCat(
        name, " -", std::string(1, letter),
        " looks at no sitecustomize: its training is seen where it calls stepwell.init()");
  }
  if (IsElsewhere(name)) {
    return absl::StrCat(
        name,
        " may start programs without these variables, on this machine or others: those "
        "are not seen; let it pass PYTHONPATH and STEPWELL_*, or call stepwell.init() there");
  }
  return "";
}

}  // namespace stepwell::cli
