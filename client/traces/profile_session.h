// ProfileSession: where TensorBoard's profile plugin keeps what TensorFlow and JAX write, plugins/profile/SESSION/HOST.xplane.pb,
// as one name, SESSION@HOST.xplane.pb: sessions of one host stay apart, and are laid out again as they were. Pure functions, but for
// the one that looks into a directory.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace stepwell::traces {

struct ProfileSession {
  std::string session;  // the folder
  std::string file;     // within it; both of letters, digits, '-', '_' and '.', and not hidden
};

// Empty: `path`, which begins with '/', lies in no session, or one of another kind of names.
std::string SessionNameOf(const std::string& path);
// Of a trace's name, whoever chose it.
std::optional<ProfileSession> SessionOfName(const std::string& name);

// The traces of all sessions at or below `directory`, also where that is one of them, in order; with it in front. kNotFound: there
// are none, or it cannot be read.
[[nodiscard]] absl::StatusOr<std::vector<std::string>> ProfilesBelow(const std::string& directory);

}  // namespace stepwell::traces
