#include "client/recorder/src/agent_launch.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "client/recorder/src/spool_format.h"
#include "client/recorder/src/spool_roots.h"

namespace stepwell::recorder {
namespace {

constexpr char kProgramName[] = "stepwell";

std::string FolderOf(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

void AddFromPath(const std::string& name, const ProgramSurroundings& around,
                 std::vector<std::string>& programs) {
  const std::string path = ReadVariable(around.environment, "PATH");
  for (std::string_view rest = path; !rest.empty();) {
    const std::string folder(rest.substr(0, rest.find(':')));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    // An empty one means the working directory to a shell; a trial's is no place for programs.
    if (!folder.empty() && folder.front() == '/') programs.push_back(folder + "/" + name);
  }
}

// What posix_spawn takes, freed at the end.
class Actions {
 public:
  Actions() { posix_spawn_file_actions_init(&actions_); }
  ~Actions() { posix_spawn_file_actions_destroy(&actions_); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  // stdio to nowhere, nothing else open: an agent that kept the trial's output open would hold back
  // the end of `python train.py | cat`.
  int LetGoOfTheTrial() {
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      const int flags = fd == STDIN_FILENO ? O_RDONLY : O_WRONLY;
      const int error = posix_spawn_file_actions_addopen(&actions_, fd, "/dev/null", flags, 0);
      if (error != 0) return error;
    }
    const int error = CloseTheRest();
    return error != 0 ? error : posix_spawn_file_actions_addchdir_np(&actions_, "/");
  }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  int CloseTheRest() {
#if __GLIBC_PREREQ(2, 34)
    return posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
#else
    // What is opened meanwhile stays open in the agent unless it closes on exec.
    const long end = std::min(sysconf(_SC_OPEN_MAX), 65536L);
    for (int fd = STDERR_FILENO + 1; fd < end; ++fd) {
      if (fcntl(fd, F_GETFD) < 0) continue;
      if (const int error = posix_spawn_file_actions_addclose(&actions_, fd); error != 0) {
        return error;
      }
    }
    return 0;
#endif
  }
  posix_spawn_file_actions_t actions_;
};

class Attributes {
 public:
  Attributes() { posix_spawnattr_init(&attributes_); }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  int StartAfresh() {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    return posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Any function of ours.
void Here() {}

}  // namespace

std::vector<std::string> ListPrograms(const std::string& given, const ProgramSurroundings& around) {
  std::vector<std::string> programs;
  const std::string named =
      given.empty() ? ReadVariable(around.environment, "STEPWELL_AGENT") : given;
  if (named.find('/') != std::string::npos) return {MakeAbsolute(named, around.working_directory)};
  if (!named.empty()) {
    AddFromPath(named, around, programs);
    return programs;
  }
  for (const std::string& file : {around.executable, around.library}) {
    const std::string folder = FolderOf(file);
    if (folder.empty()) continue;
    programs.push_back(folder + "/" + kProgramName);
    if (file == around.library) programs.push_back(folder + "/../bin/" + kProgramName);
  }
  AddFromPath(kProgramName, around, programs);
  return programs;
}

std::vector<std::string> AgentVariables(const char* const* variables,
                                        const std::string& working_directory) {
  constexpr std::array<std::string_view, 3> kFiles = {
      "STEPWELL_TLS_CA=", "STEPWELL_TLS_CERT=", "STEPWELL_TLS_KEY="};
  constexpr std::array<std::string_view, 5> kLeftOut = {"LD_PRELOAD=", "LD_AUDIT=", "LD_DEBUG",
                                                        "LD_PROFILE", "PYTHON"};
  const std::string no_server = std::string("STEPWELL_SERVER=") + spool::kServerOffline;
  std::vector<std::string> kept;
  for (; variables != nullptr && *variables != nullptr; ++variables) {
    const std::string_view variable = *variables;
    const bool is_left_out =
        std::any_of(kLeftOut.begin(), kLeftOut.end(), [variable](std::string_view left_out) {
          return variable.substr(0, left_out.size()) == left_out;
        });
    if (is_left_out || variable == no_server) continue;
    const auto file = std::find_if(kFiles.begin(), kFiles.end(), [variable](std::string_view name) {
      return variable.size() > name.size() && variable.substr(0, name.size()) == name;
    });
    kept.emplace_back(variable);
    if (file == kFiles.end()) continue;
    const std::string path(variable.substr(file->size()));
    kept.back() = std::string(*file) + MakeAbsolute(path, working_directory);
  }
  return kept;
}

ProgramSurroundings ReadProgramSurroundings(const Environment& environment) {
  ProgramSurroundings around;
  around.environment = environment;
  std::array<char, 4096> text{};
  if (getcwd(text.data(), text.size()) != nullptr) around.working_directory = text.data();
  const ssize_t length = readlink("/proc/self/exe", text.data(), text.size());
  if (length > 0 && length < static_cast<ssize_t>(text.size())) {
    around.executable.assign(text.data(), static_cast<std::size_t>(length));
  }
  Dl_info found{};
  if (dladdr(reinterpret_cast<void*>(&Here), &found) != 0 && found.dli_fname != nullptr) {
    around.library = MakeAbsolute(found.dli_fname, around.working_directory);
  }
  return around;
}

std::string FindProgram(const AgentLaunch& launch) {
  const auto found =
      std::find_if(launch.programs.begin(), launch.programs.end(), [](const std::string& path) {
        struct stat status {};
        return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
               access(path.c_str(), X_OK) == 0;
      });
  return found == launch.programs.end() ? "" : *found;
}

int Launch(const AgentLaunch& launch, const std::string& program, pid_t* launched) {
  Actions actions;
  Attributes attributes;
  if (const int error = actions.LetGoOfTheTrial(); error != 0) return error;
  if (const int error = attributes.StartAfresh(); error != 0) return error;
  std::vector<std::string> words = {program, "agent", "--spool-dir", launch.root, "--on-demand"};
  if (launch.removes_root) words.emplace_back("--remove-root");
  std::vector<std::string> variables = launch.variables;
  const std::vector<char*> word_pointers = Pointers(words);
  const std::vector<char*> variable_pointers = Pointers(variables);
  return posix_spawn(launched, program.c_str(), actions.get(), attributes.get(),
                     word_pointers.data(), variable_pointers.data());
}

}  // namespace stepwell::recorder
