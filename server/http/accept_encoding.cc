#include "server/http/accept_encoding.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace stepwell {
namespace {

constexpr std::size_t kDecimalsMax = 3;

// Whether a weight allows: "0.5", "1.000"; not "0", "0.000", nor what is no weight.
bool Allows(absl::string_view weight) {
  const absl::string_view decimals = weight.size() > 2 ? weight.substr(2) : "";
  const bool is_one = absl::StartsWith(weight, "1");
  const auto is_digit = [&](unsigned char c) { return is_one ? c == '0' : std::isdigit(c) != 0; };
  if (weight.empty() || (!is_one && weight[0] != '0') || (weight.size() > 1 && weight[1] != '.') ||
      decimals.size() > kDecimalsMax || !std::all_of(decimals.begin(), decimals.end(), is_digit)) {
    return false;
  }
  return is_one || decimals.find_first_not_of('0') != absl::string_view::npos;
}

// Of the parameters behind a coding there is one, its weight.
bool IsAllowed(const std::vector<absl::string_view>& parts) {
  if (parts.size() == 1) return true;
  const absl::string_view weight = absl::StripAsciiWhitespace(parts[1]);
  return parts.size() == 2 && absl::StartsWithIgnoreCase(weight, "q=") && Allows(weight.substr(2));
}

}  // namespace

bool AcceptsGzip(const HttpRequest& request) {
  std::optional<bool> named;
  std::optional<bool> any;
  for (const auto& [name, value] : request.headers) {
    if (!absl::EqualsIgnoreCase(name, "Accept-Encoding")) continue;
    for (const absl::string_view entry : absl::StrSplit(value, ',')) {
      const std::vector<absl::string_view> parts = absl::StrSplit(entry, ';');
      const absl::string_view coding = absl::StripAsciiWhitespace(parts[0]);
      const bool is_gzip =
          absl::EqualsIgnoreCase(coding, "gzip") || absl::EqualsIgnoreCase(coding, "x-gzip");
      if (is_gzip) named = named.value_or(true) && IsAllowed(parts);
      if (coding == "*") any = any.value_or(true) && IsAllowed(parts);
    }
  }
  return named.value_or(any.value_or(false));
}

}  // namespace stepwell
