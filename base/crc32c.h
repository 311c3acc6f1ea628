// CRC-32C (Castagnoli, RFC 3720 appendix B.4): the checksum of chunks and spool frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepwell {

// Extends `crc` (0 for a fresh one) by `data`. Crc32c("123456789") is 0xE3069283.
// Uses the SSE4.2 instruction where the processor has it, a table elsewhere.
std::uint32_t ExtendCrc32c(std::uint32_t crc, const void* data, std::size_t bytes);

inline std::uint32_t Crc32c(std::string_view data) {
  return ExtendCrc32c(0, data.data(), data.size());
}

// The checksum of a chunk: sequence and sealed time as 8 little-endian bytes each, then the body.
std::uint32_t ChunkCrc32c(std::uint64_t sequence, std::int64_t sealed_time_us,
                          std::string_view body);

}  // namespace stepwell
