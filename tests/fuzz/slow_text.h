// SlowText: what a text is made of, decoded number by number, to compare with what is quick. Header
// only; pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace stepwell::testing {

// Whether these are characters of Unicode, and none of control: decoded number by number.
struct SlowText {
  bool is_utf8 = true;
  bool has_control = false;
};
inline SlowText ReadSlowly(std::string_view text) {
  SlowText read;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(at);
    const std::size_t length = first < 0x80           ? 1
                               : (first >> 5) == 0x06 ? 2
                               : (first >> 4) == 0x0e ? 3
                               : (first >> 3) == 0x1e ? 4
                                                      : 0;
    if (length == 0 || at + length > text.size()) return {.is_utf8 = false};
    std::uint32_t number = length == 1 ? first : first & (0xffU >> (length + 1));
    for (std::size_t i = 1; i < length; ++i) {
      if (byte(at + i) >> 6 != 0x02) return {.is_utf8 = false};
      number = number << 6 | (byte(at + i) & 0x3fU);
    }
    constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    const bool is_surrogate = number >= 0xd800 && number <= 0xdfff;
    if (number < kLeast[length] || is_surrogate || number > 0x10ffff) return {.is_utf8 = false};
    read.has_control = read.has_control || number < 0x20 || (number >= 0x7f && number < 0xa0);
    at += length;
  }
  return read;
}

}  // namespace stepwell::testing
