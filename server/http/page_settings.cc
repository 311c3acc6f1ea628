#include "server/http/page_settings.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"

namespace stepwell {
namespace {

constexpr std::size_t kAddressBytesMax = 512;

bool IsAllOf(absl::string_view text, absl::string_view others) {
  return std::all_of(text.begin(), text.end(), [others](unsigned char c) {
    return std::isalnum(c) != 0 || absl::StrContains(others, static_cast<char>(c));
  });
}

bool IsHost(absl::string_view host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    const absl::string_view inner = host.substr(1, host.size() - 2);
    return inner.find_first_not_of("0123456789abcdefABCDEF:.") == absl::string_view::npos;
  }
  return !host.empty() && IsAllOf(host, ".-_");
}

bool IsPort(absl::string_view port) {
  int number = 0;
  return !port.empty() && std::all_of(port.begin(), port.end(), absl::ascii_isdigit) &&
         absl::SimpleAtoi(port, &number) && number > 0 && number < 65'536;
}

}  // namespace

bool IsViewerAddress(std::string_view address_untrusted) {
  absl::string_view rest(address_untrusted.data(), address_untrusted.size());
  if (rest.size() > kAddressBytesMax) return false;
  if (!absl::ConsumePrefix(&rest, "https://") && !absl::ConsumePrefix(&rest, "http://")) {
    return false;
  }
  const absl::string_view authority = rest.substr(0, rest.find('/'));
  const absl::string_view path = rest.substr(authority.size());
  if (!IsAllOf(path, "/.-_~%")) return false;
  const bool is_v6 = !authority.empty() && authority.front() == '[';
  const auto colon =
      authority.find(':', is_v6 ? std::min(authority.find(']'), authority.size()) : 0);
  if (colon != absl::string_view::npos && !IsPort(authority.substr(colon + 1))) return false;
  return IsHost(authority.substr(0, colon));
}

std::string PageSettingsJson(const std::string& trace_viewer) {
  return nlohmann::json{{"trace_viewer", trace_viewer}}.dump() + "\n";
}

}  // namespace stepwell
