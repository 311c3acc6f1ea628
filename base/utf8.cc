#include "base/utf8.h"

namespace stepwell {

std::size_t CharacterBytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t count) {
    if (text.size() <= count) return false;
    for (std::size_t i = 1; i <= count; ++i) {
      if ((at(i) & 0xC0) != 0x80) return false;
    }
    return true;
  };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if (!continues(2)) return 0;
    if (first == 0xE0 && at(1) < 0xA0) return 0;  // overlong
    if (first == 0xED && at(1) > 0x9F) return 0;  // surrogate
    return 3;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if (!continues(3)) return 0;
    if (first == 0xF0 && at(1) < 0x90) return 0;  // overlong
    if (first == 0xF4 && at(1) > 0x8F) return 0;  // above U+10FFFF
    return 4;
  }
  return 0;
}

bool BeginsWithControl(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x20 || first == 0x7F) return true;
  return first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
}

}  // namespace stepwell
