#include "storage/presence.h"

#include <algorithm>

namespace stepwell {

BitString PackPresence(std::span<const std::uint8_t> presence) {
  BitString bits;
  bits.bit_count = presence.size();
  bits.bytes.assign((presence.size() + 7) / 8, '\0');
  for (std::size_t i = 0; i < presence.size(); ++i) {
    if (presence[i] != 0) bits.bytes[i / 8] |= static_cast<char>(0x80u >> (i % 8));
  }
  return bits;
}

std::vector<std::uint8_t> UnpackPresence(const BitString& bits) {
  std::vector<std::uint8_t> presence(std::min(bits.bit_count, 8 * bits.bytes.size()));
  for (std::size_t i = 0; i < presence.size(); ++i) {
    presence[i] = static_cast<unsigned char>(bits.bytes[i / 8]) >> (7 - i % 8) & 1;
  }
  return presence;
}

std::size_t CountPresent(std::span<const std::uint8_t> presence) {
  return static_cast<std::size_t>(std::count_if(presence.begin(), presence.end(),
                                                [](std::uint8_t present) { return present != 0; }));
}

}  // namespace stepwell
