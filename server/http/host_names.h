// HostNames: the names of --http-host, as a Host header has them. A core; pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace stepwell {

// "a.example, b" → {"a.example", "b"}. kInvalidArgument: what no Host header can name, such as one with a
// scheme, a port, a path or a '*'.
absl::StatusOr<std::vector<std::string>> ParseHostNames(std::string_view list_untrusted);

}  // namespace stepwell
