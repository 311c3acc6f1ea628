// WideDecode: integers of a vector's bits, four at a time: read, put on their frame, line or sum of deltas, turned
// into what is wanted and stored, without a look at memory in between. For VectorDecoder, which has
// checked everything and has the same one by one. A core; thread-safe.
#pragma once

#include <cstddef>

#include "storage/bit_reader.h"
#include "storage/encoded_vector.h"
#include "storage/wide.h"

namespace stepwell {

// What becomes of each integer k, and where it is stored.
struct DecodeTarget {
  enum class As { kInteger, kDouble, kProduct, kQuotient };
  // Eight bytes for each.
  void* to = nullptr;
  As as = As::kInteger;
  // double(k) * by, or double(k) / by.
  double by = 1;
};

// Whether the bits can be read so: at least one, and so few that one word holds an integer wherever it begins.
inline bool IsWideWidth(int width, Lanes lanes) {
  return lanes == Lanes::kFour && width > 0 && width <= BitReader::kWordWidthMax;
}

#if defined(STEPWELL_WIDE)
// Samples [first, end). REQUIRES of all of these: IsWideWidth(encoded.width), the bits hold `end` integers or more,
// no integer overflows.
void DecodeFrameWide(const EncodedVector& encoded, std::size_t first, std::size_t end,
                     const DecodeTarget& target);
void DecodeLineWide(const EncodedVector& encoded, std::size_t first, std::size_t end,
                    const DecodeTarget& target);
// All of `count` samples. REQUIRES: count > 0.
void DecodeDeltaWide(const EncodedVector& encoded, std::size_t count, const DecodeTarget& target);
#endif

}  // namespace stepwell
