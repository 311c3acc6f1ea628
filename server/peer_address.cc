#include "server/peer_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace stepwell {
namespace {

std::string KeyOf(in6_addr address) {
  std::array<char, INET6_ADDRSTRLEN> written{};
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    inet_ntop(AF_INET, &address.s6_addr[12], written.data(), written.size());
    return written.data();
  }
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), std::uint8_t{0});
  inet_ntop(AF_INET6, &address, written.data(), written.size());
  return absl::StrCat(written.data(), "/64");
}

}  // namespace

std::optional<std::string> AddressKey(std::string_view address) {
  // What follows a NUL is not read below.
  if (address.find('\0') != address.npos) return std::nullopt;
  const std::string text(address.substr(0, address.find('%')));
  in_addr v4{};
  in6_addr v6{};
  // IPv4 has no zones.
  if (text.size() == address.size() && inet_pton(AF_INET, text.c_str(), &v4) == 1) return text;
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) return std::nullopt;
  return KeyOf(v6);
}

std::string AddressOfSocket(const sockaddr& peer) {
  if (peer.sa_family == AF_INET) {
    std::array<char, INET_ADDRSTRLEN> written{};
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr, written.data(),
              written.size());
    return written.data();
  }
  if (peer.sa_family != AF_INET6) return "";
  return KeyOf(reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr);
}

std::string AddressOfPeer(std::string_view peer) {
  // Brackets may be escaped.
  const std::string text =
      absl::StrReplaceAll({peer.data(), peer.size()}, {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "ipv4:") && !absl::ConsumePrefix(&rest, "ipv6:")) return "";
  rest = rest.substr(0, rest.rfind(':'));
  absl::ConsumePrefix(&rest, "[");
  absl::ConsumeSuffix(&rest, "]");
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
