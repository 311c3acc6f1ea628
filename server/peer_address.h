// PeerAddress: the address that somebody comes from, as limits count it. A core.
//
//   const std::string address = AddressOfPeer(context.peer());   // "ipv4:10.0.0.7:51034" gives "10.0.0.7"
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct sockaddr;

namespace stepwell {

// "10.0.0.7" as it is, "::ffff:10.0.0.7" as "10.0.0.7"; of IPv6 its network of 64 bits, "2001:db8:0:1::/64", for who has one
// of those has them all; a zone ("fe80::1%eth0") is none of them. Nothing where it is no address.
std::optional<std::string> AddressKey(std::string_view address);
// Of a connection's other end; empty where that is neither of IPv4 nor of IPv6. REQUIRES: `peer` is as large as its family says.
std::string AddressOfSocket(const sockaddr& peer);
// Of a peer as gRPC writes it; empty where it has no address.
std::string AddressOfPeer(std::string_view peer);
// A connection's other end with its port, "10.0.0.7:51034" or "[2001:db8::1]:51034", without a zone: the same from its socket and from
// its peer as gRPC writes it. Empty as above.
std::string EndOfSocket(const sockaddr& peer);
std::string EndOfPeer(std::string_view peer);
// "10.0.0.7,2001:db8::1": keys of addresses with commas between them. kInvalidArgument names the one that is none.
absl::StatusOr<std::set<std::string>> ParseAddresses(std::string_view text_untrusted);

}  // namespace stepwell
