// BitString: a row of bits, the first one in the highest bit of the first byte, as PostgreSQL keeps
// a `varbit`. A value.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace stepwell {

struct BitString {
  // (bit_count + 7) / 8 bytes; the unused low bits of the last one are 0.
  std::string bytes{};
  std::size_t bit_count = 0;

  bool operator==(const BitString&) const = default;
};

// How many bits `value` takes; 0 takes none.
inline int BitWidth(std::uint64_t value) { return 64 - std::countl_zero(value); }

}  // namespace stepwell
