// Vectors of codec v1 as they lie in databases, one and more of each form, made by hand from docs/codec.md: not by an
// encoder, so that a change of how both the encoder and the decoders read a form is seen. None of them is ever changed:
// who wants another form gives it another number. Header only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "storage/bit_string.h"
#include "storage/encoded_vector.h"

namespace stepwell::testing {

struct FrozenVector {
  const char* name;
  EncodedVector encoded;
  // The samples: of values their bits, of integers (without a divisor) these.
  std::vector<std::uint64_t> words = {};
  std::vector<std::int64_t> integers = {};
};

// The first `bit_count` bits of hexadecimal digits.
inline BitString BitsOfHex(std::string_view hex, std::size_t bit_count) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'A' + 10; };
  BitString bits{.bytes = {}, .bit_count = bit_count};
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bits.bytes.push_back(static_cast<char>(16 * digit(hex[i]) + digit(hex[i + 1])));
  }
  return bits;
}

inline std::vector<FrozenVector> FrozenVectors() {
  const double quiet = std::bit_cast<double>(std::uint64_t{0x7ff8000000000abc});
  const double least = std::bit_cast<double>(std::uint64_t{1});
  return {
      {"frame: -3 + 5 * {0, 15, 7, 1}, tenths",
       {.form = Form{0},
        .width = 4,
        .base = -3,
        .factor = 5,
        .divisor_exponent = 1,
        .bits = BitsOfHex("0F71", 16)},
       {0xbfd3333333333333, 0x401ccccccccccccd, 0x400999999999999a, 0x3fc999999999999a}},
      {"frame: a constant", {.form = Form{0}, .base = -1}, {}, {-1, -1, -1}},
      {"delta: 1000, then + 2 * (-1 + {0, 7, 3, 1}), eighths",
       {.form = Form{1},
        .width = 3,
        .base = 1000,
        .factor = 2,
        .divisor_exponent = -3,
        .bits = BitsOfHex("1D90", 12),
        .dictionary = {-1}},
       {0x405f400000000000, 0x405f300000000000, 0x405f900000000000, 0x405fb00000000000,
        0x405fb00000000000}},
      {"delta: 41, then + 1",
       {.form = Form{1}, .base = 41, .dictionary = {1}},
       {},
       {41, 42, 43, 44}},
      {"runs: 7 + 3 * {0, 3, 1}, of 3, 1 and 5 samples, hundredths",
       {.form = Form{2},
        .width = 2,
        .width2 = 5,
        .base = 7,
        .factor = 3,
        .divisor_exponent = 2,
        .bits = BitsOfHex("34", 6),
        .bits2 = BitsOfHex("1008", 15)},
       {0x3fb1eb851eb851ec, 0x3fb1eb851eb851ec, 0x3fb1eb851eb851ec, 0x3fc47ae147ae147b,
        0x3fb999999999999a, 0x3fb999999999999a, 0x3fb999999999999a, 0x3fb999999999999a,
        0x3fb999999999999a}},
      {"sparse: 40 + 2 * {0, 255, 16} at 1, 6 and 9 of 10",
       {.form = Form{3},
        .width = 8,
        .base = 40,
        .factor = 2,
        .bits = BitsOfHex("00FF10", 24),
        .bits2 = BitsOfHex("4240", 10)},
       {0, 0x4044000000000000, 0, 0, 0, 0, 0x4081300000000000, 0, 0, 0x4052000000000000}},
      {"raw: NaN with a payload, -0, the least denormal",
       {.form = Form{4}, .raw = {quiet, -0.0, least}},
       {0x7ff8000000000abc, 0x8000000000000000, 1}},
      {"dictionary: {2, 0, 1, 1, 2} of -5, 0 and 2^40, thousandths",
       {.form = Form{5},
        .width = 2,
        .divisor_exponent = 3,
        .bits = BitsOfHex("8580", 10),
        .dictionary = {-5, 0, INT64_C(1) << 40}},
       {0x41d0624dd2f1a9fc, 0xbf747ae147ae147b, 0, 0, 0x41d0624dd2f1a9fc}},
      {"dictionary of doubles: {0, 1, 1, 0} of 0.5 and NaN",
       {.form = Form{5}, .width = 1, .bits = BitsOfHex("60", 4), .raw = {0.5, quiet}},
       {0x3fe0000000000000, 0x7ff8000000000abc, 0x7ff8000000000abc, 0x3fe0000000000000}},
      {"linear: a cadence of a second, + {3, 0, 15, 8}",
       {.form = Form{6},
        .width = 4,
        .base = 1'700'000'000'000'000,
        .bits = BitsOfHex("30F8", 16),
        .dictionary = {1'000'000}},
       {},
       {1'700'000'000'000'003, 1'700'000'001'000'000, 1'700'000'002'000'015,
        1'700'000'003'000'008}},
  };
}

}  // namespace stepwell::testing
