#include "client/traces/profile_session.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stepwell::traces {
namespace {

constexpr char kBetween = '@';
// A trace's name has 255 bytes at most, of which ".gz" may be added.
constexpr std::size_t kNameBytesMax = 252;

bool IsPlain(const std::string& part) {
  return !part.empty() && part.front() != '.' && std::all_of(part.begin(), part.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  });
}

bool IsOfPlugin(const std::string& file) {
  for (const char* ending : {".xplane.pb", ".trace.json", ".trace.json.gz"}) {
    if (absl::EndsWith(file, ending) && file != ending) return true;
  }
  return false;
}

// plugins/profile/SESSION/FILE.
bool LiesInSession(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path().parent_path();
  return folder.filename() == "profile" && folder.parent_path().filename() == "plugins";
}

}  // namespace

std::string SessionNameOf(const std::string& path) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/');
  const std::size_t count = parts.size();
  if (count < 4 || parts[count - 4] != "plugins" || parts[count - 3] != "profile") return "";
  const std::string name = absl::StrCat(parts[count - 2], std::string(1, kBetween), parts.back());
  return SessionOfName(name) && name.size() <= kNameBytesMax ? name : "";
}

std::optional<ProfileSession> SessionOfName(const std::string& name) {
  const std::size_t between = name.find(kBetween);
  if (between == std::string::npos) return std::nullopt;
  ProfileSession found = {name.substr(0, between), name.substr(between + 1)};
  if (!IsPlain(found.session) || !IsPlain(found.file) || !IsOfPlugin(found.file)) {
    return std::nullopt;
  }
  return found;
}

absl::StatusOr<std::vector<std::string>> ProfilesBelow(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code failed;
  std::vector<std::string> found;
  // Links are not followed: no circles, and nothing that lies elsewhere.
  fs::recursive_directory_iterator each(directory, fs::directory_options::skip_permission_denied,
                                        failed);
  for (; !failed && each != fs::recursive_directory_iterator(); each.increment(failed)) {
    const fs::path& path = each->path();
    std::error_code unknown;
    if (!IsOfPlugin(path.filename().generic_string()) ||
        !fs::is_regular_file(each->symlink_status(unknown))) {
      continue;
    }
    if (LiesInSession(fs::absolute(path, unknown).lexically_normal())) {
      found.push_back(path.generic_string());
    }
  }
  if (failed) return absl::NotFoundError(absl::StrCat(directory, ": ", failed.message()));
  if (found.empty()) {
    return absl::NotFoundError(
        absl::StrCat(directory,
                     " is a directory without a profiler's plugins/profile/SESSION/HOST.xplane.pb: "
                     "name the traces in it"));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace stepwell::traces
