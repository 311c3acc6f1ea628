#include "server/host_port.h"

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stepwell {

absl::StatusOr<HostPort> ParseHostPort(const std::string& text) {
  const absl::Status wrong = absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is not HOST:PORT with a port of 0 to 65535, as in 127.0.0.1:7817"
                   " or [::1]:0"));
  const auto colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return wrong;
  HostPort parsed;
  parsed.host = text.substr(0, colon);
  if (!absl::SimpleAtoi(text.substr(colon + 1), &parsed.port) || parsed.port < 0 ||
      parsed.port > 65535) {
    return wrong;
  }
  // Brackets are for addresses of version 6, and those stand in nothing else: RFC 3986, 3.2.2.
  const bool is_bracketed = parsed.host.front() == '[' && parsed.host.back() == ']';
  if (is_bracketed) parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  if (is_bracketed != absl::StrContains(parsed.host, ":")) return wrong;
  if (parsed.host.find_first_of("[]") != std::string::npos) return wrong;
  return parsed;
}

std::string HostText(const std::string& host) {
  return absl::StrContains(host, ":") ? absl::StrCat("[", host, "]") : host;
}

std::string HostPortText(const std::string& host, int port) {
  return absl::StrCat(HostText(host), ":", port);
}

}  // namespace stepwell
