#include "server/http/url_text.h"

#include <algorithm>
#include <cctype>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

std::optional<std::string> Decoded(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      plain.push_back(' ');
    } else if (text[i] != '%') {
      plain.push_back(text[i]);
    } else {
      if (i + 2 >= text.size() || std::isxdigit(static_cast<unsigned char>(text[i + 1])) == 0 ||
          std::isxdigit(static_cast<unsigned char>(text[i + 2])) == 0) {
        return std::nullopt;
      }
      plain += absl::HexStringToBytes({text.data() + i + 1, 2});
      i += 2;
    }
  }
  return plain;
}

}  // namespace

UrlTarget SplitUrlTarget(std::string_view target_untrusted) {
  UrlTarget target;
  std::string_view rest = target_untrusted;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!absl::EqualsIgnoreCase(View(rest.substr(0, scheme.size())), View(scheme))) continue;
    rest.remove_prefix(scheme.size());
    const auto end = std::min(rest.find_first_of("/?"), rest.size());
    target.authority = rest.substr(0, end);
    rest.remove_prefix(end);
    break;
  }
  const auto query = rest.find('?');
  target.path = rest.substr(0, query);
  if (query != std::string_view::npos) target.query = rest.substr(query + 1);
  if (target.authority && target.path.empty()) target.path = "/";
  return target;
}

absl::StatusOr<std::map<std::string, std::string>> ParseUrlQuery(std::string_view query_untrusted) {
  std::map<std::string, std::string> values;
  for (const absl::string_view part :
       absl::StrSplit(View(query_untrusted), '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> pair =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    const auto name = Decoded({pair.first.data(), pair.first.size()});
    const auto value = Decoded({pair.second.data(), pair.second.size()});
    if (!name || !value) {
      return absl::InvalidArgumentError("the query has a % without two hexadecimal digits");
    }
    if (!values.emplace(*name, *value).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("the query has '", Shortened(*name, 64), "' twice"));
    }
  }
  return values;
}

}  // namespace stepwell
