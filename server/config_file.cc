#include "server/config_file.h"

#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace stepwell {
namespace {

// Nothing: a quote that does not end, or something behind the text in quotes that is no comment.
std::optional<std::string> Unquoted(absl::string_view value) {
  value = absl::StripAsciiWhitespace(value);
  if (value.empty() || value.front() != '"') {
    return std::string(absl::StripAsciiWhitespace(value.substr(0, value.find('#'))));
  }
  const auto end = value.find('"', 1);
  if (end == absl::string_view::npos) return std::nullopt;
  const absl::string_view behind = absl::StripAsciiWhitespace(value.substr(end + 1));
  if (!behind.empty() && behind.front() != '#') return std::nullopt;
  return std::string(value.substr(1, end - 1));
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
    std::optional<std::string> value = Unquoted(line.substr(equals + 1));
    if (!value) {
      return absl::InvalidArgumentError(absl::StrCat(
          line_no, ": '", line, "' is not key = \"value\", with nothing behind but a # comment"));
    }
    lines.push_back({line_no, std::string(absl::StripAsciiWhitespace(line.substr(0, equals))),
                     *std::move(value)});
  }
  return lines;
}

}  // namespace stepwell
