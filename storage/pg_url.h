// PgUrl: what a person gives to --database-url, checked and completed. Pure functions.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace stepwell {

// `url` (postgresql://... or key=value form) as a key=value string in which `settings` win over
// what the URL says. kInvalidArgument says what is allowed, without repeating any part of the URL.
absl::StatusOr<std::string> PgConninfo(
    const std::string& url, const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace stepwell
