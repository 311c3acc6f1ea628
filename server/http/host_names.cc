#include "server/http/host_names.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/tls/certificate_names.h"
#include "server/host_port.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr std::size_t kShownBytesMax = 64;

bool IsName(absl::string_view name) {
  const auto is_part = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  };
  const auto is_v6_part = [](unsigned char c) {
    return std::isxdigit(c) != 0 || c == ':' || c == '.';
  };
  if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
    return std::all_of(name.begin() + 1, name.end() - 1, is_v6_part);
  }
  return std::all_of(name.begin(), name.end(), is_part);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseHostNames(std::string_view list_untrusted,
                                                        std::string_view certificate_pem) {
  std::vector<std::string> names;
  for (const std::string& name : ServerNames(certificate_pem)) names.push_back(HostText(name));
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(list_untrusted.data(), list_untrusted.size()), ',',
                      absl::SkipWhitespace())) {
    const absl::string_view name = absl::StripAsciiWhitespace(part);
    if (!IsName(name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", Shortened(name, kShownBytesMax),
                       "' is no name of a host; allowed: names and addresses without scheme, port "
                       "and path, one by one"));
    }
    names.emplace_back(name);
  }
  return names;
}

}  // namespace stepwell
