#include "storage/value_scale.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

#include "base/check.h"
#include "storage/encoded_vector.h"

namespace stepwell {
namespace {

constexpr double kExactMax = 9007199254740992.0;  // 2^53: up to here doubles hold every integer
// Scaled integers stay below 2^62, so that the difference of two fits an int64.
constexpr int kScaledBitsMax = 62;
constexpr std::uint64_t kExponentMask = 0x7ff;
constexpr int kMantissaBits = 52;

constexpr std::array<double, kDecimalExponentMax + 1> kPowersOfTen = {
    1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// The integer nearest to `value` * `power` if it gives `value` back. Not llrint: it is a call.
inline bool ScaleDecimal(double value, double power, std::int64_t& integer) {
  const double scaled = value * power;
  if (!(std::fabs(scaled) <= kExactMax)) return false;
  std::int64_t k = static_cast<std::int64_t>(scaled);
  const double rest = scaled - static_cast<double>(k);
  k += static_cast<std::int64_t>(rest >= 0.5) - static_cast<std::int64_t>(rest <= -0.5);
  integer = k;
  return std::bit_cast<std::uint64_t>(static_cast<double>(k) / power) ==
         std::bit_cast<std::uint64_t>(value);
}

// Values that are looked at at once: a loop of fixed length without branches, which compilers turn
// into vector instructions.
constexpr std::size_t kBlock = 8;
// Added to a double of less than 2^51 and taken away again, it rounds it; what lies between is the
// integer, in the low bits.
constexpr double kRounder = 6755399441055744.0;     // 1.5 * 2^52
constexpr double kRoundedMax = 2251799813685248.0;  // 2^51

// As ScaleDecimal for a whole block. False also where a value is too large to be rounded so. Whole numbers
// need no division, which costs more than all the rest.
template <bool kIsWhole>
inline bool ScaleBlock(const double* values, double power, std::int64_t* integers) {
  std::array<double, kBlock> scaled;
  std::array<std::uint64_t, kBlock> wrong;
  for (std::size_t i = 0; i < kBlock; ++i) {
    scaled[i] = kIsWhole ? values[i] : values[i] * power;
    const double rounded = scaled[i] + kRounder;
    // Wraps where the value is too large, which is found below.
    integers[i] = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(rounded) -
                                            std::bit_cast<std::uint64_t>(kRounder));
    const double whole = rounded - kRounder;
    wrong[i] = std::bit_cast<std::uint64_t>(kIsWhole ? whole : whole / power) ^
               std::bit_cast<std::uint64_t>(values[i]);
  }
  bool right = true;
  for (std::size_t i = 0; i < kBlock; ++i) {
    right &= (wrong[i] == 0) & (std::fabs(scaled[i]) < kRoundedMax);  // NaN is not below
  }
  return right;
}

// How many of the first values 10^exponent divides, as far as it is quick to say.
template <bool kIsWhole>
std::size_t ScaleBlocksBy(std::span<const double> values, double power, std::int64_t* integers) {
  std::size_t done = 0;
  while (values.size() - done >= kBlock &&
         ScaleBlock<kIsWhole>(values.data() + done, power, integers + done)) {
    done += kBlock;
  }
  return done;
}

std::size_t ScaleBlocks(std::span<const double> values, double power, std::int64_t* integers) {
  return power == 1 ? ScaleBlocksBy<true>(values, power, integers)
                    : ScaleBlocksBy<false>(values, power, integers);
}

// Tries the exponents upwards; a value that needs more digits restarts nothing, since what
// 10^e divides exactly, 10^(e+1) does too. The second pass checks that, of those before the last such
// value: mostly a few, where every value would cost a division more.
std::optional<std::int16_t> ScaleByTen(std::span<const double> values, std::int64_t* integers) {
  std::size_t exponent = 0;
  std::size_t rose_at = 0;
  for (std::size_t i = 0; i < values.size();) {
    i += ScaleBlocks(values.subspan(i), kPowersOfTen[exponent], integers + i);
    // One by one up to the value that needs more digits; behind it the next block may do again.
    bool rose = false;
    for (const std::size_t end = std::min(values.size(), i + kBlock); i < end && !rose; ++i) {
      while (!ScaleDecimal(values[i], kPowersOfTen[exponent], integers[i])) {
        if (++exponent > kDecimalExponentMax) return std::nullopt;
        if (!(std::fabs(values[i]) * kPowersOfTen[exponent] <= kExactMax)) return std::nullopt;
        rose_at = i;
        rose = true;
      }
    }
  }
  const double power = kPowersOfTen[exponent];
  for (std::size_t i = ScaleBlocks(values.first(rose_at), power, integers); i < rose_at; ++i) {
    if (!ScaleDecimal(values[i], power, integers[i])) return std::nullopt;
  }
  return static_cast<std::int16_t>(exponent);
}

// A finite normal double is mantissa * 2^exponent with an odd mantissa.
struct Binary {
  std::uint64_t mantissa = 0;
  int exponent = 0;
  bool negative = false;
};

std::optional<Binary> SplitBinary(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  if (bits == 0) return Binary{};
  const auto field = static_cast<int>(bits >> kMantissaBits & kExponentMask);
  if (field == 0 || field == static_cast<int>(kExponentMask)) return std::nullopt;
  const std::uint64_t one = std::uint64_t{1} << kMantissaBits;
  const std::uint64_t mantissa = (bits & (one - 1)) | one;
  const int zeros = std::countr_zero(mantissa);
  return Binary{mantissa >> zeros, field - 1023 - kMantissaBits + zeros, (bits >> 63) != 0};
}

std::optional<std::int16_t> ScaleByTwo(std::span<const double> values, std::int64_t* integers) {
  int exponent = 0;               // of the divisor
  int top = -kBinaryExponentMax;  // every value is below 2^top
  for (const double value : values) {
    const std::optional<Binary> binary = SplitBinary(value);
    if (!binary) return std::nullopt;
    if (binary->mantissa == 0) continue;
    exponent = std::max(exponent, -binary->exponent);
    top = std::max(top, binary->exponent + BitWidth(binary->mantissa));
    if (exponent > kBinaryExponentMax || top + exponent > kScaledBitsMax) return std::nullopt;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Binary binary = *SplitBinary(values[i]);
    const int shift = binary.mantissa == 0 ? 0 : binary.exponent + exponent;
    const auto k = static_cast<std::int64_t>(binary.mantissa << shift);
    integers[i] = binary.negative ? -k : k;
  }
  return static_cast<std::int16_t>(-exponent);
}

}  // namespace

bool ScaleValues(std::span<const double> values, ScaledValues& scaled) {
  scaled.integers.resize(values.size());
  std::optional<std::int16_t> exponent = ScaleByTen(values, scaled.integers.data());
  if (!exponent) exponent = ScaleByTwo(values, scaled.integers.data());
  if (exponent) scaled.divisor_exponent = *exponent;
  return exponent.has_value();
}

std::optional<ScaledValues> ScaleValues(std::span<const double> values) {
  ScaledValues scaled;
  if (!ScaleValues(values, scaled)) return std::nullopt;
  return scaled;
}

double Divisor(std::int16_t divisor_exponent) {
  STEPWELL_CHECK(divisor_exponent >= -kBinaryExponentMax &&
                 divisor_exponent <= kDecimalExponentMax);
  if (divisor_exponent < 0) return std::ldexp(1.0, -divisor_exponent);
  return kPowersOfTen[static_cast<std::size_t>(divisor_exponent)];
}

}  // namespace stepwell
