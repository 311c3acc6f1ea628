// Encoded vectors as a damaged or foreign database may hold them. Header only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include "storage/encoded_vector.h"

namespace stepwell::testing {

// Any change of any column, or of how many samples are asked for.
inline void Damage(std::mt19937_64& random, EncodedVector& encoded, std::size_t& sample_count) {
  const auto small = [&] { return static_cast<std::int16_t>(random() % 140 - 70); };
  const auto any = [&] { return static_cast<std::int64_t>(random() >> (random() % 64)); };
  BitString& bits = random() % 2 == 0 ? encoded.bits : encoded.bits2;
  switch (random() % 11) {
    case 0:
      encoded.form = Form{static_cast<std::int16_t>(random() % 9 - 1)};
      break;
    case 1:
      encoded.width = small();
      break;
    case 2:
      encoded.width2 = small();
      break;
    case 3:
      encoded.divisor_exponent = static_cast<std::int16_t>(random());
      break;
    case 4:
      encoded.base = any();
      break;
    case 5:
      encoded.factor = -any();
      break;
    case 6:
      bits.bytes.resize(random() % (bits.bytes.size() + 3), '\xff');
      break;
    case 7:
      bits.bit_count = static_cast<std::size_t>(any());
      break;
    case 8:
      if (!bits.bytes.empty()) bits.bytes[random() % bits.bytes.size()] ^= '\x55';
      break;
    case 9:
      encoded.dictionary.resize(random() % 5, any());
      encoded.raw.resize(random() % 5, 1.0);
      break;
    default:
      sample_count = random() % 3 == 0 ? static_cast<std::size_t>(any()) : random() % 800;
  }
}

// Like Damage, but what a row of PostgreSQL can hold and what often still fits: both decoders are then
// asked more than how long the bit strings are.
inline void DamageSlightly(std::mt19937_64& random, EncodedVector& encoded) {
  const auto any = [&] { return static_cast<std::int64_t>(random()) >> (random() % 64); };
  BitString& bits = random() % 2 == 0 ? encoded.bits : encoded.bits2;
  switch (random() % 10) {
    case 0:
      encoded.form = Form{static_cast<std::int16_t>(random() % 9 - 1)};
      break;
    case 1:
      encoded.width = static_cast<std::int16_t>(encoded.width + random() % 3 - 1);
      break;
    case 2:
      encoded.width2 = static_cast<std::int16_t>(encoded.width2 + random() % 3 - 1);
      break;
    case 3:
      encoded.divisor_exponent = random() % 4 == 0 ? static_cast<std::int16_t>(random())
                                                   : static_cast<std::int16_t>(random() % 50 - 25);
      break;
    case 4:
      encoded.base = any();
      break;
    case 5:
      encoded.factor = any();
      break;
    case 6:
      if (!encoded.dictionary.empty())
        encoded.dictionary[random() % encoded.dictionary.size()] = any();
      break;
    case 7:
      if (random() % 2 == 0) encoded.raw.resize(random() % 4, 0.5);
      if (random() % 2 == 0) encoded.dictionary.resize(random() % 4, any());
      break;
    case 8:
      bits.bit_count = random() % (8 * bits.bytes.size() + 9);
      bits.bytes.resize((bits.bit_count + 7) / 8, '\x5a');
      break;
    default:
      if (!bits.bytes.empty())
        bits.bytes[random() % bits.bytes.size()] ^= static_cast<char>(random());
  }
  // As PostgreSQL clears them.
  for (BitString* string : {&encoded.bits, &encoded.bits2}) {
    const std::size_t unused = 8 * string->bytes.size() - string->bit_count;
    if (unused > 0) string->bytes.back() &= static_cast<char>(0xff << unused);
  }
}

}  // namespace stepwell::testing
