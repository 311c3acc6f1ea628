// RequestBound: how much would be built of a request, estimated before anything is. An empty message within a message takes
// two bytes on the wire and a hundred times as many in memory, so that the bound of a request's bytes bounds neither. Both
// doors ask: gRPC where it parses (request_traits.h), HTTP before it hands on. A core.
//
//   STEPWELL_RETURN_IF_ERROR(CheckRequest(*method.input_type(), bytes));   // then ParseFromString
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace google::protobuf {
class Descriptor;
namespace io {
class ZeroCopyInputStream;
}  // namespace io
}  // namespace google::protobuf

namespace stepwell {

// By what each part takes in memory on x86-64, some more or less: a message, a label (an entry of a map, its texts beside),
// a text, a field that nobody knows. Numbers take at most eight times their bytes, and none of this.
inline constexpr std::size_t kMessageBuiltBytes = 256;
inline constexpr std::size_t kLabelBuiltBytes = 64;
inline constexpr std::size_t kTextBuiltBytes = 48;
inline constexpr std::size_t kUnknownBuiltBytes = 64;
// A question of a thousand selectors with 32 labels each takes 6 MiB.
inline constexpr std::size_t kRequestBuiltBytesMax = 16 << 20;
// Of what defines series: 10,000 of a writer with 32 labels each.
inline constexpr std::size_t kDefiningBuiltBytesMax = 64 << 20;

// That of a request, by its message.
std::size_t BuiltBytesMax(const google::protobuf::Descriptor& message);

// How much that is; with the bytes themselves it is about what the message takes. Errors as below.
absl::StatusOr<std::size_t> BuiltBytesOf(const google::protobuf::Descriptor& message,
                                         google::protobuf::io::ZeroCopyInputStream& bytes_untrusted,
                                         std::size_t built_bytes_max);

// kResourceExhausted: more than that would be built; kInvalidArgument: the bytes are no such message, or a text in it is
// not UTF-8.
absl::Status CheckRequest(const google::protobuf::Descriptor& message,
                          google::protobuf::io::ZeroCopyInputStream& bytes_untrusted,
                          std::size_t built_bytes_max);
absl::Status CheckRequest(const google::protobuf::Descriptor& message,
                          std::string_view bytes_untrusted);

}  // namespace stepwell
