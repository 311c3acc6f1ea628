#include "server/config_file.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stepwell {
namespace {

std::string Unquoted(absl::string_view value) {
  value = absl::StripAsciiWhitespace(value);
  if (!value.empty() && value.front() == '"') {
    const auto end = value.find('"', 1);
    return std::string(value.substr(1, end == absl::string_view::npos ? end : end - 1));
  }
  return std::string(absl::StripAsciiWhitespace(value.substr(0, value.find('#'))));
}

}  // namespace

absl::StatusOr<std::vector<ConfigLine>> ReadConfigFile(absl::string_view text) {
  std::vector<ConfigLine> lines;
  int line_no = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++line_no;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#') continue;
    const auto equals = line.find('=');
    if (equals == absl::string_view::npos) {
      return absl::InvalidArgumentError(absl::StrCat(line_no, ": '", line, "' is not key = value"));
    }
    lines.push_back({line_no, std::string(absl::StripAsciiWhitespace(line.substr(0, equals))),
                     Unquoted(line.substr(equals + 1))});
  }
  return lines;
}

}  // namespace stepwell
