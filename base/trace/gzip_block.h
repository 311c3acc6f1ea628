// GzipBlock: bytes that are whole in memory, packed in zlib's form (RFC 1950): what Perfetto takes within a
// packet. For streams: GzipPacker. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stepwell {

std::string PackedBlock(std::string_view bytes, int level);
// Nothing: it is damaged, or unpacks to more than `bytes_max`.
std::optional<std::string> UnpackedBlock(std::string_view packed, std::size_t bytes_max);

}  // namespace stepwell
