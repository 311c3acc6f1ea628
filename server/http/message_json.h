// MessageJson: messages between their two forms on the wire, bytes and JSON (proto3's mapping), by
// descriptor. Thread-safe.
//
//   STEPWELL_ASSIGN_OR_RETURN(std::string bytes, BytesOfJson(*method.input_type(), body));
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace stepwell {

// kResourceExhausted, of both: it has too many parts (request_parts.h). kInvalidArgument: the bytes are no such message, of which gRPC would say that the service failed.
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
