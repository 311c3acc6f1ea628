// IntegerFrame: base + factor * x of an encoded vector, and whether PostgreSQL computes it without an
// overflow. It refuses a row where it cannot, and so does the decoder, which asks before it reads:
// then it needs no check per sample. A core; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "storage/bit_reader.h"
#include "storage/encoded_vector.h"

namespace stepwell {

class IntegerFrame {
 public:
  explicit IntegerFrame(const EncodedVector& encoded)
      : base_(static_cast<std::uint64_t>(encoded.base)),
        factor_(static_cast<std::uint64_t>(encoded.factor)) {}
  // Wraps where it must: an overflow is no trap here.
  std::int64_t operator()(std::uint64_t x) const {
    return static_cast<std::int64_t>(base_ + factor_ * x);
  }
  // Whether neither factor * x nor k leaves an int64; then it does so for no x nearer to 0.
  bool Holds(std::int64_t x) const { return Holds(static_cast<std::int64_t>(base_), x); }
  // The same from another base.
  bool Holds(std::int64_t base, std::int64_t x) const {
    std::int64_t product = 0;
    std::int64_t k = 0;
    return !__builtin_mul_overflow(static_cast<std::int64_t>(factor_), x, &product) &&
           !__builtin_add_overflow(base, product, &k);
  }

 private:
  const std::uint64_t base_;
  const std::uint64_t factor_;
};

// In all of these `reader` holds the `count` integers of `encoded.bits`; they are looked at only where
// their width alone does not tell.

// Whether the frame holds each of them.
bool HoldsAll(const IntegerFrame& frame, const BitReader& reader, int width, std::size_t count);
// Whether it holds each sum of deltas, and no sum overflows. REQUIRES: the dictionary has one element.
bool HoldsSums(const IntegerFrame& frame, const BitReader& reader, const EncodedVector& encoded,
               std::size_t count);
// Whether no term of (base + index * step) + factor * x overflows. REQUIRES: likewise.
bool HoldsLine(const IntegerFrame& frame, const BitReader& reader, const EncodedVector& encoded,
               std::size_t count);

}  // namespace stepwell
