#include "server/http/http_guard.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "nlohmann/json.hpp"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr std::size_t kShownBytesMax = 128;

std::string Lower(std::string_view text) {
  return absl::AsciiStrToLower({text.data(), text.size()});
}

// "name" of "name:7818", "[::1]" of "[::1]:7818"; nothing where it is neither.
std::optional<std::string> NameOf(std::string_view authority) {
  std::string_view name = authority;
  std::string_view port;
  const auto end = !authority.empty() && authority.front() == '[' ? authority.find(']') : 0;
  if (end == std::string_view::npos) return std::nullopt;
  if (const auto colon = authority.find(':', end); colon != std::string_view::npos) {
    name = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (name.empty() || !std::all_of(port.begin(), port.end(), is_digit)) return std::nullopt;
  return Lower(name);
}

// No name that somebody registers ends in a digit, and none has brackets.
bool IsAddress(std::string_view name) {
  const auto is_numeric = [](unsigned char c) { return std::isdigit(c) != 0 || c == '.'; };
  return name.front() == '[' || std::all_of(name.begin(), name.end(), is_numeric);
}

HttpResponse Refusal(int status, const std::string& text) {
  // As a Connect client reads it, too.
  return {status, "application/json",
          nlohmann::json{{"code", status == 400 ? "invalid_argument" : "permission_denied"},
                         {"message", text}}
                  .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
              "\n"};
}

std::string Shown(std::string_view text) {
  return Shortened({text.data(), text.size()}, kShownBytesMax);
}

}  // namespace

HttpGuard::HttpGuard(const Options& options) : names_{"localhost", "127.0.0.1", "[::1]"} {
  any_address_ = options.host == "0.0.0.0" || options.host == "::";
  const bool is_v6 = options.host.find(':') != std::string::npos;
  names_.insert(is_v6 ? absl::StrCat("[", Lower(options.host), "]") : Lower(options.host));
  for (const std::string& name : options.names) {
    names_.insert(Lower(std::string(absl::StripAsciiWhitespace(name))));
  }
}

bool HttpGuard::IsOurs(std::string_view host) const {
  const auto name = NameOf(host);
  return name && (names_.count(*name) != 0 || (any_address_ && IsAddress(*name)));
}

std::optional<HttpResponse> HttpGuard::Refuse(const HttpRequest& request, HttpDoor door) const {
  if (request.HeaderCount("Host") > 1) return Refusal(400, "several Host headers");
  if (door == HttpDoor::kOpen) return std::nullopt;
  const std::string_view host = request.Header("Host");
  if (!IsOurs(host)) {
    return Refusal(403, absl::StrCat("Host '", Shown(host),
                                     "' is no name of this master's; --http-host adds one"));
  }
  if (door == HttpDoor::kNamed) return std::nullopt;
  for (const char* name : {"Origin", "Sec-Fetch-Site"}) {
    if (request.HeaderCount(name) > 1)
      return Refusal(400, absl::StrCat("several ", name, " headers"));
  }
  if (request.HeaderCount("Origin") > 0) {
    const std::string_view origin = request.Header("Origin");
    absl::string_view authority(origin.data(), origin.size());
    // Behind a proxy with TLS pages are https and we are not.
    if (!absl::ConsumePrefix(&authority, "http://") &&
        !absl::ConsumePrefix(&authority, "https://")) {
      authority = {};
    }
    if (Lower({authority.data(), authority.size()}) != Lower(host)) {
      return Refusal(
          403, absl::StrCat("pages of Origin '", Shown(origin), "' may not call this master"));
    }
  }
  // What carries no Origin: a GET of a page of another site.
  const std::string_view site = request.Header("Sec-Fetch-Site");
  if (!site.empty() && site != "same-origin" && site != "none") {
    return Refusal(403, "pages of another site may not call this master");
  }
  return std::nullopt;
}

}  // namespace stepwell
