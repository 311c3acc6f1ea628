// DatabaseText: what a fault test asks the database of a master by itself, over libpq, and how a database
// becomes older than it is. Blocking, a connection for each call.
#pragma once

#include <string>

namespace stepwell::faults {

// The first column of the first row; "" where there is none, and "failed: " with the database's words.
std::string DatabaseText(const std::string& database_url, const std::string& sql);

struct Age {
  int days = 0;
  int seconds = 0;
};
// As if all that is stored had been received that much earlier: rows of days lie in the leaves of earlier
// days, what waits in the rings of recent and journal waits longer. Times of samples stay. Empty = done.
// REQUIRES: no master runs on it.
std::string MakeOlder(const std::string& database_url, Age age);

}  // namespace stepwell::faults
