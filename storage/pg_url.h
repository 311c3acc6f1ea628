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

// What PgConninfo makes of it, once for each host that it names, in order: libpq by itself goes on to
// the next one only where one refuses, not where it says nothing. One string where there is one host or
// none, where the lists of host, hostaddr and port do not fit together (libpq says so), and where
// target_session_attrs=prefer-standby looks at all of them at once.
absl::StatusOr<std::vector<std::string>> PgConninfoOfEachHost(
    const std::string& url, const std::vector<std::pair<std::string, std::string>>& settings);

}  // namespace stepwell
