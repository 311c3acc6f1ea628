#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace stepwell {
namespace {

constexpr std::uint32_t kPolynomialReversed = 0x82f63b78;

constexpr std::array<std::uint32_t, 256> MakeTable() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? kPolynomialReversed : 0);
    table[i] = crc;
  }
  return table;
}

std::uint32_t ExtendByTable(std::uint32_t crc, const unsigned char* data, std::size_t bytes) {
  static constexpr auto kTable = MakeTable();
  for (std::size_t i = 0; i < bytes; ++i) crc = kTable[(crc ^ data[i]) & 0xff] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t ExtendByInstruction(std::uint32_t crc,
                                                                    const unsigned char* data,
                                                                    std::size_t bytes) {
  std::uint64_t wide = crc;
  for (; bytes >= 8; data += 8, bytes -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    wide = _mm_crc32_u64(wide, word);
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; bytes > 0; ++data, --bytes) narrow = _mm_crc32_u8(narrow, *data);
  return narrow;
}
#endif

void PutLittleEndian(std::uint64_t value, unsigned char* out) {
  for (int i = 0; i < 8; ++i) out[i] = static_cast<unsigned char>(value >> (8 * i));
}

}  // namespace

std::uint32_t ExtendCrc32c(std::uint32_t crc, const void* data, std::size_t bytes) {
  const auto* begin = static_cast<const unsigned char*>(data);
#if defined(__x86_64__)
  static const bool has_instruction = __builtin_cpu_supports("sse4.2");
  if (has_instruction) return ~ExtendByInstruction(~crc, begin, bytes);
#endif
  return ~ExtendByTable(~crc, begin, bytes);
}

std::uint32_t ChunkCrc32c(std::uint64_t sequence, std::int64_t sealed_time_us,
                          std::string_view body) {
  unsigned char head[16];
  PutLittleEndian(sequence, head);
  PutLittleEndian(static_cast<std::uint64_t>(sealed_time_us), head + 8);
  return ExtendCrc32c(ExtendCrc32c(0, head, sizeof(head)), body.data(), body.size());
}

}  // namespace stepwell
