// RequestParts: how much would be built of a request, counted before anything is. An empty message within a message takes
// two bytes on the wire and a hundred times as many in memory, so that the bound of a body's bytes bounds neither. A core.
//
//   STEPWELL_RETURN_IF_ERROR(CheckParts(*method.input_type(), bytes));   // then ParseFromString
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace stepwell {

// Messages, texts and fields that nobody knows, in all: some 16 MiB of the dearest. What is asked in earnest has a thousand.
inline constexpr std::size_t kRequestPartsMax = 65'536;

// kResourceExhausted: more than `parts_max`; kInvalidArgument: the bytes are no such message.
absl::Status CheckParts(const google::protobuf::Descriptor& message,
                        std::string_view bytes_untrusted, std::size_t parts_max = kRequestPartsMax);
// The same of JSON, whose parts are what commas and brackets begin; whether it is any is not looked at.
absl::Status CheckJsonParts(std::string_view json_untrusted,
                            std::size_t parts_max = kRequestPartsMax);

}  // namespace stepwell
