#include "base/server_address.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

// A name of the DNS has 253 characters at most.
constexpr std::size_t kHostBytesMax = 255;

bool IsHost(std::string_view host) {
  if (host.empty() || host.size() > kHostBytesMax) return false;
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (is_bracketed) host = host.substr(1, host.size() - 2);
  return std::all_of(host.begin(), host.end(), [&](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '.' || c == '-' || c == '_' ||
           (is_bracketed && (c == ':' || c == '%'));
  });
}

}  // namespace

bool IsServerAddress(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || !IsHost(text.substr(0, colon))) return false;
  const std::string_view digits = text.substr(colon + 1);
  int port = 0;
  // The one way to write it: an address is also a key.
  return absl::SimpleAtoi(absl::string_view(digits.data(), digits.size()), &port) && port >= 1 &&
         port <= 65535 && absl::StrCat(port) == std::string(digits);
}

}  // namespace stepwell
