// ConfigFile: the file of --config: one `key = value` per line, as TOML has: # begins a comment, text
// may stand in double quotes, and must where it holds a # or begins or ends with a blank. There are no
// escapes: what holds a double quote stands without them. Pure.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace stepwell {

struct ConfigLine {
  int line_no = 0;
  std::string key;
  std::string value;
};

// kInvalidArgument: "3: 'nonsense' is not key = value".
absl::StatusOr<std::vector<ConfigLine>> ReadConfigFile(absl::string_view text);

}  // namespace stepwell
