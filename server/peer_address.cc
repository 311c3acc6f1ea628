#include "server/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace stepwell {

std::optional<std::string> AddressKey(std::string_view address) {
  const std::string text(address);
  std::array<char, INET6_ADDRSTRLEN> written{};
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return text;
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return std::nullopt;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    inet_ntop(AF_INET, &v6.s6_addr[12], written.data(), written.size());
    return written.data();
  }
  std::fill(std::begin(v6.s6_addr) + 8, std::end(v6.s6_addr), std::uint8_t{0});
  inet_ntop(AF_INET6, &v6, written.data(), written.size());
  return absl::StrCat(written.data(), "/64");
}

std::string AddressOfPeer(std::string_view peer) {
  // Brackets may be escaped, and a zone may follow the address.
  const std::string text =
      absl::StrReplaceAll({peer.data(), peer.size()}, {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "ipv4:") && !absl::ConsumePrefix(&rest, "ipv6:")) return "";
  rest = rest.substr(0, rest.rfind(':'));
  absl::ConsumePrefix(&rest, "[");
  absl::ConsumeSuffix(&rest, "]");
  rest = rest.substr(0, rest.find('%'));
  return AddressKey({rest.data(), rest.size()}).value_or("");
}

absl::StatusOr<std::set<std::string>> ParseAddresses(std::string_view text_untrusted) {
  std::set<std::string> keys;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text_untrusted.data(), text_untrusted.size()), ',',
                      absl::SkipWhitespace())) {
    const absl::string_view one = absl::StripAsciiWhitespace(part);
    const auto key = AddressKey({one.data(), one.size()});
    if (!key) return absl::InvalidArgumentError(absl::StrCat("'", one, "' is no address"));
    keys.insert(*key);
  }
  return keys;
}

}  // namespace stepwell
