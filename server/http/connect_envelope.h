// ConnectEnvelope: how a stream of the Connect protocol frames its messages: flags (1 byte), length
// (4 bytes, big endian), payload. A core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepwell {

inline constexpr std::uint8_t kEnvelopeCompressed = 1;
inline constexpr std::uint8_t kEnvelopeEndOfStream = 2;

struct ConnectEnvelope {
  std::uint8_t flags = 0;
  std::string_view payload;  // of what was parsed
};

// What stands before a payload. REQUIRES: that is below 4 GiB.
std::string EnvelopeHead(std::uint8_t flags, std::size_t payload_bytes);
// With its payload.
std::string EnvelopeText(std::uint8_t flags, std::string_view payload);
// The body of a call that has one request. kInvalidArgument: it is cut off; kUnimplemented: no message, or more than
// one (gRPC's code for it, which connectrpc/conformance asks for), or flags of a later protocol.
absl::StatusOr<ConnectEnvelope> ParseOneEnvelope(std::string_view body);

}  // namespace stepwell
