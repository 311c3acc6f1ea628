// Gzip: whole texts in and out of gzip, over zlib. Pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace stepwell {

// For answers: quick rather than small.
std::string Gzip(std::string_view plain);
// kInvalidArgument: not gzip, or cut off; kResourceExhausted: more than `plain_bytes_max` come out.
absl::StatusOr<std::string> Gunzip(std::string_view packed_untrusted, std::size_t plain_bytes_max);

}  // namespace stepwell
