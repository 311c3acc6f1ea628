// ValueScale: finds integers k and a divisor, a power of ten or of two, with k / divisor equal to
// each value bit for bit. A core; thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/wide.h"

namespace stepwell {

struct ScaledValues {
  // |k| <= 2^53 under a power of ten; below 2^62 and exact as doubles otherwise.
  std::vector<std::int64_t> integers;
  // As in EncodedVector.
  std::int16_t divisor_exponent = 0;
};

// nullopt where no divisor does, and for -0, NaN, infinities and denormals, which no quotient of
// integers gives back.
std::optional<ScaledValues> ScaleValues(std::span<const double> values);
// The same for callers with many short columns, which keep one `scaled`: overwritten, and of no use
// where false is returned.
bool ScaleValues(std::span<const double> values, ScaledValues& scaled, Lanes lanes = WidestLanes());

// REQUIRES: -kBinaryExponentMax <= divisor_exponent <= kDecimalExponentMax.
double Divisor(std::int16_t divisor_exponent);

}  // namespace stepwell
