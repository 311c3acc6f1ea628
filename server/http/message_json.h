// MessageJson: messages between their two forms on the wire, bytes and JSON (proto3's mapping), by
// descriptor. Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(std::string bytes, BytesOfJson(*method.input_type(), body));
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace stepwell {

// A thousand selectors with 32 labels each have 34,000.
inline constexpr std::size_t kJsonElementsMax = 65'536;

// Both kResourceExhausted: too much would be built of it (proto/request_bound.h), or the JSON has too many elements.
// kInvalidArgument: the bytes are no such message, of which gRPC would say that the service failed.
absl::Status CheckBytes(const google::protobuf::Descriptor& message,
                        const std::string& bytes_untrusted);
// kInvalidArgument says where: also for a field that the message does not have, which would go unnoticed
// otherwise. An empty text is an empty message.
absl::StatusOr<std::string> BytesOfJson(const google::protobuf::Descriptor& message,
                                        const std::string& json_untrusted);
// kInternal: the bytes are no such message.
absl::StatusOr<std::string> JsonOfBytes(const google::protobuf::Descriptor& message,
                                        const std::string& bytes);

}  // namespace stepwell
