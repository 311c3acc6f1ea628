// UrlText: the query of a URL, read once and only here. Pure functions.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepwell {

// "a=1&b=%20" as names and values; of a name that comes twice the first counts. kInvalidArgument: a
// percent sign without two digits behind it.
absl::StatusOr<std::map<std::string, std::string>> ParseUrlQuery(std::string_view query_untrusted);

}  // namespace stepwell
