// ProfileSession: where TensorBoard's profile plugin keeps what TensorFlow and JAX write, plugins/profile/SESSION/HOST.xplane.pb,
// as one name, SESSION@HOST.xplane.pb: sessions of one host stay apart, and are laid out again as they were. Pure functions.
#pragma once

#include <optional>
#include <string>

namespace stepwell::traces {

struct ProfileSession {
  std::string session;  // the folder
  std::string file;     // within it; both of letters, digits, '-', '_' and '.', and not hidden
};

// Empty: `path`, which begins with '/', lies in no session, or one of another kind of names.
std::string SessionNameOf(const std::string& path);
// Of a trace's name, whoever chose it.
std::optional<ProfileSession> SessionOfName(const std::string& name);

}  // namespace stepwell::traces
