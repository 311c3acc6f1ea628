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

std::string Written(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> written{};
  inet_ntop(family, address, written.data(), written.size());
  return written.data();
}

std::string KeyOf(in6_addr address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) return Written(AF_INET, &address.s6_addr[12]);
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), std::uint8_t{0});
  return absl::StrCat(Written(AF_INET6, &address), "/64");
}

// The whole of it.
std::string HostOf(const in6_addr& address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) return Written(AF_INET, &address.s6_addr[12]);
  return absl::StrCat("[", Written(AF_INET6, &address), "]");
}

struct HostAndPort {
  std::string host;  // of IPv6 without its brackets
  std::string port;
};

// Of a peer as gRPC writes it, where it is of IPv4 or IPv6.
std::optional<HostAndPort> PartsOf(std::string_view peer) {
  // Brackets may be escaped.
  const std::string text =
      absl::StrReplaceAll({peer.data(), peer.size()}, {{"%5B", "["}, {"%5D", "]"}});
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "ipv4:") && !absl::ConsumePrefix(&rest, "ipv6:")) {
    return std::nullopt;
  }
  const auto colon = std::min(rest.rfind(':'), rest.size());
  HostAndPort parts{.host = "", .port = std::string(absl::StripPrefix(rest.substr(colon), ":"))};
  rest = rest.substr(0, colon);
  absl::ConsumePrefix(&rest, "[");
  absl::ConsumeSuffix(&rest, "]");
  parts.host = std::string(rest);
  return parts;
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
    return Written(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr);
  }
  if (peer.sa_family != AF_INET6) return "";
  return KeyOf(reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr);
}

std::string AddressOfPeer(std::string_view peer) {
  const auto parts = PartsOf(peer);
  return parts ? AddressKey(parts->host).value_or("") : "";
}

std::string EndOfSocket(const sockaddr& peer) {
  if (peer.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(peer);
    return absl::StrCat(Written(AF_INET, &v4.sin_addr), ":", ntohs(v4.sin_port));
  }
  if (peer.sa_family != AF_INET6) return "";
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(peer);
  return absl::StrCat(HostOf(v6.sin6_addr), ":", ntohs(v6.sin6_port));
}

std::string EndOfPeer(std::string_view peer) {
  const auto parts = PartsOf(peer);
  if (!parts) return "";
  in6_addr v6{};
  const std::string host = parts->host.substr(0, parts->host.find('%'));
  const bool is_v6 = inet_pton(AF_INET6, host.c_str(), &v6) == 1;
  return absl::StrCat(is_v6 ? HostOf(v6) : host, ":", parts->port);
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
