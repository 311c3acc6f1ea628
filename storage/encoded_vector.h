// EncodedVector: the columns of one encoded vector of numbers, as a row of `metrics`, `recent` or
// `ticks` holds them. docs/codec.md describes the forms; their numbers are stored and never change.
// A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "storage/bit_string.h"

namespace stepwell {

// How the samples lie in the columns. Below, k is a sample as an integer, x an unsigned integer
// of `width` bits from `bits`, and a sample's value is double(k) / divisor.
enum class Form : std::int16_t {
  kFrame = 0,       // k = base + factor * x; a constant has width 0
  kDelta = 1,       // first k = base; then k += factor * (dictionary[0] + x)
  kRuns = 2,        // as kFrame once per run; bits2 holds run lengths - 1, of width2 bits
  kSparse = 3,      // bits2 has a bit per sample: 0 is k = 0, 1 is the next k as in kFrame
  kRaw = 4,         // raw holds the values
  kDictionary = 5,  // k = dictionary[x], ascending; or value = raw[x] where dictionary is empty
  kLinear = 6,      // k = base + index * dictionary[0] + factor * x
};

struct EncodedVector {
  Form form = Form::kFrame;
  std::int16_t width = 0;
  std::int16_t width2 = 0;
  std::int64_t base = 0;
  std::int64_t factor = 1;
  // e >= 0: the divisor is 10^e; e < 0: it is 2^-e.
  std::int16_t divisor_exponent = 0;
  BitString bits{};
  BitString bits2{};
  std::vector<std::int64_t> dictionary{};
  std::vector<double> raw{};
};

// More samples than a row may hold; a greater count means a corrupt row.
inline constexpr std::size_t kVectorSamplesMax = std::size_t{1} << 20;
// So that PostgreSQL reads each packed integer as a bigint that is not negative.
inline constexpr std::int16_t kVectorWidthMax = 63;
// So that PostgreSQL reads each run length as an integer.
inline constexpr std::int16_t kVectorWidth2Max = 31;
// 10^22 is the largest power of ten that is a double; k / 2^1022 is never denormal.
inline constexpr std::int16_t kDecimalExponentMax = 22;
inline constexpr std::int16_t kBinaryExponentMax = 1022;

// What a stored bit string or array costs beside its content: varlena and length words, and the
// array's dimension, rounded up to PostgreSQL's alignment.
inline constexpr std::size_t kBitStringOverheadBytes = 8;
inline constexpr std::size_t kArrayOverheadBytes = 24;
// The scalar columns: four smallints and two bigints.
inline constexpr std::size_t kVectorHeaderBytes = 24;

// Bytes that the columns take in a row, before compression.
std::size_t EncodedBytes(const EncodedVector& encoded);

}  // namespace stepwell
