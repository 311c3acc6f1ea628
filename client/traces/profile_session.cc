#include "client/traces/profile_session.h"

#include <algorithm>
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

}  // namespace stepwell::traces
