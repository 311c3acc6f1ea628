#include "client/recorder/src/spool_roots.h"

namespace stepwell::recorder {
namespace {

constexpr char kSystemRoot[] = "/run/stepwell";
constexpr char kTemporary[] = "/tmp";

void AddTemporary(const std::string& folder, std::uint32_t user, std::vector<SpoolRoot>& roots) {
  const std::string path = (folder == "/" ? "" : folder) + "/stepwell-" + std::to_string(user);
  roots.push_back({RootKind::kDefault, path});
  roots.push_back({RootKind::kPrivate, path + "-XXXXXX"});
}

}  // namespace

std::string MakeAbsolute(const std::string& path, const std::string& working_directory) {
  if (path.empty() || path.front() == '/') return path;
  return (working_directory == "/" ? "" : working_directory) + "/" + path;
}

std::vector<SpoolRoot> ListRoots(const std::string& given, const RootSurroundings& around) {
  const auto absolute = [&around](const std::string& path) {
    return MakeAbsolute(path, around.working_directory);
  };
  const std::string wanted =
      given.empty() ? ReadVariable(around.environment, "STEPWELL_SPOOL_DIR") : given;
  if (!wanted.empty()) return {{RootKind::kGiven, absolute(wanted)}};

  std::vector<SpoolRoot> roots;
  const std::string named = ReadVariable(around.environment, "STEPWELL_SYSTEM_ROOT");
  const std::string system = named.empty() ? kSystemRoot : absolute(named);
  if (around.is_served(system, /*may_be_own=*/!named.empty())) {
    roots.push_back({RootKind::kSystem, system + "/u" + std::to_string(around.user)});
  }
  std::string temporary = absolute(ReadVariable(around.environment, "TMPDIR"));
  while (temporary.size() > 1 && temporary.back() == '/') temporary.pop_back();
  if (!temporary.empty()) AddTemporary(temporary, around.user, roots);
  // A job's own directory often lies on a parallel file system, where no spool may be.
  if (temporary != kTemporary) AddTemporary(kTemporary, around.user, roots);
  return roots;
}

}  // namespace stepwell::recorder
