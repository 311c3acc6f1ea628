// Utf8: where characters of a text end, for all who take or show texts of others. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace stepwell {

// Bytes of the character that `text` begins with: 1 to 4; 0 where it is not well-formed (RFC 3629, section 4:
// overlong, a surrogate, above U+10FFFF, cut) or `text` is empty.
std::size_t CharacterBytes(std::string_view text);

// Whether it begins with a character of control: C0, DEL, C1. REQUIRES: CharacterBytes(text) > 0.
bool BeginsWithControl(std::string_view text);

}  // namespace stepwell
