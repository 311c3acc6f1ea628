#include "server/http/connect_envelope.h"

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

constexpr std::size_t kHeadBytes = 5;

}  // namespace

std::string EnvelopeHead(std::uint8_t flags, std::size_t payload_bytes) {
  std::string head(1, static_cast<char>(flags));
  for (int shift = 24; shift >= 0; shift -= 8) {
    head.push_back(static_cast<char>((payload_bytes >> shift) & 0xff));
  }
  return head;
}

std::string EnvelopeText(std::uint8_t flags, std::string_view payload) {
  return EnvelopeHead(flags, payload.size()).append(payload);
}

absl::StatusOr<ConnectEnvelope> ParseOneEnvelope(std::string_view body) {
  if (body.empty()) return absl::UnimplementedError("the request has no message, allowed is one");
  if (body.size() < kHeadBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request has ", body.size(), " bytes, an envelope begins with 5"));
  }
  ConnectEnvelope envelope;
  envelope.flags = static_cast<std::uint8_t>(body[0]);
  std::uint32_t bytes = 0;
  for (std::size_t i = 1; i < kHeadBytes; ++i) {
    bytes = bytes << 8 | static_cast<std::uint8_t>(body[i]);
  }
  envelope.payload = body.substr(kHeadBytes);
  if (envelope.payload.size() > bytes) {
    return absl::UnimplementedError(
        absl::StrCat("the request goes on behind a message of ", bytes, " bytes, allowed is one"));
  }
  if (envelope.payload.size() < bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the envelope says ", bytes, " bytes, ", envelope.payload.size(), " follow"));
  }
  if ((envelope.flags & ~kEnvelopeCompressed) != 0) {
    return absl::UnimplementedError(
        absl::StrCat("flags ", envelope.flags, " of an envelope, allowed are 0 and 1"));
  }
  return envelope;
}

}  // namespace stepwell
