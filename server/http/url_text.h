// UrlText: what a request asks for and the query of a URL, read once and only here. Pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepwell {

// Views of what was split.
struct UrlTarget {
  // Of the absolute form (RFC 9112, 3.2.2), which proxies send: "http://host:80/path?query"; in its place Host
  // does not count.
  std::optional<std::string_view> authority;
  // As it was sent; "/" where the absolute form has none.
  std::string_view path;
  std::string_view query;
};
UrlTarget SplitUrlTarget(std::string_view target_untrusted);

// "a=1&b=%20" as names and values. kInvalidArgument: a percent sign without two digits behind it, a name that
// comes twice.
absl::StatusOr<std::map<std::string, std::string>> ParseUrlQuery(std::string_view query_untrusted);

}  // namespace stepwell
