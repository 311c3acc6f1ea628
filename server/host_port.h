// HostPort: a host and a port as people write them, "127.0.0.1:7817" or "[::1]:0". Pure: asks no DNS.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace stepwell {

struct HostPort {
  std::string host;
  int port = 0;
};
// "127.0.0.1:7817", "[::1]:0", "localhost:80". kInvalidArgument otherwise.
absl::StatusOr<HostPort> ParseHostPort(const std::string& text);
std::string HostPortText(const std::string& host, int port);
// As it stands before a port: "[::1]", any other as it is.
std::string HostText(const std::string& host);

}  // namespace stepwell
