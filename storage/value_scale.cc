#include "storage/value_scale.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "storage/encoded_vector.h"

namespace stepwell {
namespace {

constexpr double kExactMax = 9007199254740992.0;  // 2^53: up to here doubles hold every integer
// Scaled integers stay below 2^62, so that the difference of two fits an int64.
constexpr int kScaledBitsMax = 62;
constexpr int kMantissaBits = 52;
// What a double's bits have for its exponent: that of 1, and the greatest.
constexpr int kFieldOfOne = 1023;
constexpr std::int64_t kFieldMax = 2047;

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
constexpr double kRounder = 6755399441055744.0;  // 1.5 * 2^52
// What lies between has this sign and exponent where the double is not too large; NaN has not.
constexpr std::uint64_t kRoundedExponent = std::bit_cast<std::uint64_t>(kRounder) >> kMantissaBits;

// As ScaleDecimal for a whole block. False also where a value is too large to be rounded so. Whole numbers
// need no division, which costs more than all the rest.
template <bool kIsWhole>
bool ScaleBlock(const double* values, double power, std::int64_t* integers) {
  std::array<std::uint64_t, kBlock> wrong;
  for (std::size_t i = 0; i < kBlock; ++i) {
    const double rounded = (kIsWhole ? values[i] : values[i] * power) + kRounder;
    const auto bits = std::bit_cast<std::uint64_t>(rounded);
    // Wraps where the value is too large, which is found below.
    integers[i] = static_cast<std::int64_t>(bits - std::bit_cast<std::uint64_t>(kRounder));
    const double whole = rounded - kRounder;
    wrong[i] = (std::bit_cast<std::uint64_t>(kIsWhole ? whole : whole / power) ^
                std::bit_cast<std::uint64_t>(values[i])) |
               (bits >> kMantissaBits ^ kRoundedExponent);
  }
  std::uint64_t any_wrong = 0;
  for (const std::uint64_t each : wrong) any_wrong |= each;
  return any_wrong == 0;
}

#if defined(STEPWELL_WIDE)
static_assert(kBlock % kFour == 0);

template <bool kIsWhole>
STEPWELL_WIDE_INLINE bool ScaleBlockWide(const double* values, double power,
                                         std::int64_t* integers) {
  const FourDoubles rounder = FourDoubles{} + kRounder;
  FourWords wrong = {};
  for (std::size_t i = 0; i < kBlock; i += kFour) {
    const FourDoubles value = LoadFour(values + i);
    const FourDoubles rounded = (kIsWhole ? value : value * power) + rounder;
    const FourWords bits = WordsOf(rounded);
    StoreFour(bits - WordsOf(rounder), integers + i);
    const FourDoubles whole = rounded - rounder;
    wrong |= WordsOf(kIsWhole ? whole : whole / power) ^ WordsOf(value);
    wrong |= bits >> kMantissaBits ^ kRoundedExponent;
  }
  return SignsOf(IntegersOf(wrong) == 0) == 0xf;
}

// How many of the first values 10^exponent divides, as far as it is quick to say. The last ones are a block
// together with zeros: one by one they would cost a short column most of its time.
template <bool kIsWhole>
STEPWELL_WIDE std::size_t ScaleBlocksWide(std::span<const double> values, double power,
                                          std::int64_t* integers) {
  std::size_t done = 0;
  while (values.size() - done >= kBlock) {
    if (!ScaleBlockWide<kIsWhole>(values.data() + done, power, integers + done)) return done;
    done += kBlock;
  }
  const std::size_t rest = values.size() - done;
  if (rest == 0) return done;
  std::array<double, kBlock> last = {};
  std::array<std::int64_t, kBlock> scaled;
  std::memcpy(last.data(), values.data() + done, rest * sizeof(double));
  if (!ScaleBlockWide<kIsWhole>(last.data(), power, scaled.data())) return done;
  std::memcpy(integers + done, scaled.data(), rest * sizeof(std::int64_t));
  return values.size();
}

// The first exponent from `exponent` on for which it is not clear that 10^exponent does not divide `value`.
STEPWELL_WIDE std::size_t SkipExponentsWide(double value, std::size_t exponent) {
  const FourDoubles rounder = FourDoubles{} + kRounder;
  const FourWords value_bits = WordsOf(FourDoubles{} + value);
  for (; exponent + kFour <= kPowersOfTen.size(); exponent += kFour) {
    const FourDoubles power = LoadFour(kPowersOfTen.data() + exponent);
    const FourDoubles rounded = value * power + rounder;
    const FourIntegers is_wrong = (WordsOf((rounded - rounder) / power) != value_bits) &
                                  ((WordsOf(rounded) >> kMantissaBits) == kRoundedExponent);
    const unsigned wrong = SignsOf(is_wrong);
    if (wrong != 0xf) return exponent + static_cast<std::size_t>(std::countr_one(wrong));
  }
  return exponent;
}
#endif

// ScaleBlocksWide's words.
template <bool kIsWhole>
std::size_t ScaleBlocksPlainly(std::span<const double> values, double power,
                               std::int64_t* integers) {
  std::size_t done = 0;
  while (values.size() - done >= kBlock &&
         ScaleBlock<kIsWhole>(values.data() + done, power, integers + done)) {
    done += kBlock;
  }
  return done;
}

template <bool kIsWhole>
std::size_t ScaleBlocksBy(std::span<const double> values, double power, std::int64_t* integers,
                          Lanes lanes) {
#if defined(STEPWELL_WIDE)
  if (lanes == Lanes::kFour) return ScaleBlocksWide<kIsWhole>(values, power, integers);
#endif
  static_cast<void>(lanes);
  return ScaleBlocksPlainly<kIsWhole>(values, power, integers);
}

std::size_t ScaleBlocks(std::span<const double> values, double power, std::int64_t* integers,
                        Lanes lanes) {
  return power == 1 ? ScaleBlocksBy<true>(values, power, integers, lanes)
                    : ScaleBlocksBy<false>(values, power, integers, lanes);
}

std::size_t SkipExponents(double value, std::size_t exponent, Lanes lanes) {
#if defined(STEPWELL_WIDE)
  if (lanes == Lanes::kFour) return SkipExponentsWide(value, exponent);
#endif
  static_cast<void>(value);
  static_cast<void>(lanes);
  return exponent;
}

// Tries the exponents upwards; a value that needs more digits restarts nothing, since what
// 10^e divides exactly, 10^(e+1) does too. The second pass checks that, of those before the last such
// value: mostly a few, where every value would cost a division more.
std::optional<std::int16_t> ScaleByTen(std::span<const double> values, std::int64_t* integers,
                                       Lanes lanes) {
  std::size_t exponent = 0;
  std::size_t rose_at = 0;
  for (std::size_t i = 0; i < values.size();) {
    i += ScaleBlocks(values.subspan(i), kPowersOfTen[exponent], integers + i, lanes);
    // One by one up to the value that needs more digits; behind it the next block may do again.
    bool rose = false;
    for (const std::size_t end = std::min(values.size(), i + kBlock); i < end && !rose; ++i) {
      while (!ScaleDecimal(values[i], kPowersOfTen[exponent], integers[i])) {
        exponent = SkipExponents(values[i], exponent + 1, lanes);
        if (exponent > kDecimalExponentMax) return std::nullopt;
        if (!(std::fabs(values[i]) * kPowersOfTen[exponent] <= kExactMax)) return std::nullopt;
        rose_at = i;
        rose = true;
      }
    }
  }
  const double power = kPowersOfTen[exponent];
  for (std::size_t i = ScaleBlocks(values.first(rose_at), power, integers, lanes); i < rose_at;
       ++i) {
    if (!ScaleDecimal(values[i], power, integers[i])) return std::nullopt;
  }
  return static_cast<std::int16_t>(exponent);
}

// What values have in common as an odd mantissa times a power of two. Fields are those of a double's bits:
// the exponent + 1023; 0 is a denormal or zero, 2047 infinite or NaN.
struct BinaryExtent {
  // Of the greatest value; 0 where all are 0.
  std::uint64_t top_field = 0;
  // Of the lowest bit of any value that is 1. Not above 0 where there is none in a normal double: of what needs a
  // denormal for it, of denormals themselves, and of -0.
  std::int64_t low_field = kFieldMax;
};

void AddPlainly(std::span<const double> values, BinaryExtent& extent) {
  for (const double value : values) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    const std::uint64_t field = bits >> kMantissaBits & kFieldMax;
    const bool is_zero = bits == 0;
    const std::int64_t low_field = static_cast<std::int64_t>(field) - kMantissaBits +
                                   std::countr_zero(bits | std::uint64_t{1} << kMantissaBits);
    extent.top_field = std::max(extent.top_field, field);
    extent.low_field = std::min(extent.low_field, is_zero ? kFieldMax : low_field);
  }
}

#if defined(STEPWELL_WIDE)
// Takes what of `values` fills whole vectors, and says how many that were.
STEPWELL_WIDE std::size_t AddWide(std::span<const double> values, BinaryExtent& extent) {
  constexpr std::int64_t kMagnitude = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMantissa = (std::int64_t{1} << kMantissaBits) - 1;
  constexpr std::int64_t kInfinity = kFieldMax << kMantissaBits;
  FourIntegers greatest = {};
  FourIntegers lowest = FourIntegers{} + kInfinity;
  std::size_t i = 0;
  for (; i + kFour <= values.size(); i += kFour) {
    const FourDoubles value = LoadFour(values.data() + i);
    const FourIntegers bits = IntegersOf(value);
    const FourIntegers magnitude = bits & kMagnitude;
    greatest = magnitude > greatest ? magnitude : greatest;
    // Without its lowest bit, which is all of a power of two: what that takes away is the bit.
    const FourIntegers rest = bits & IntegersOf(WordsOf(value) - 1) & ((bits & kMantissa) != 0);
    const FourIntegers low = IntegersOf(value - DoublesOf(rest)) & kMagnitude;
    lowest = ((low < lowest) & (bits != 0)) ? low : lowest;
  }
  for (std::size_t lane = 0; lane < kFour; ++lane) {
    const auto top_field = static_cast<std::uint64_t>(greatest[lane] >> kMantissaBits);
    extent.top_field = std::max(extent.top_field, top_field);
    extent.low_field = std::min<std::int64_t>(extent.low_field, lowest[lane] >> kMantissaBits);
  }
  return i;
}
#endif

// The exponent of the divisor, or nothing. Looks after every so many values, for whole columns of noise
// are given up.
std::optional<int> MeasureBinary(std::span<const double> values, Lanes lanes) {
  constexpr std::size_t kLookInterval = 64;
  BinaryExtent extent;
  int exponent = 0;
  for (std::size_t begin = 0; begin < values.size(); begin += kLookInterval) {
    const auto part = values.subspan(begin, std::min(kLookInterval, values.size() - begin));
    std::size_t done = 0;
#if defined(STEPWELL_WIDE)
    if (lanes == Lanes::kFour) done = AddWide(part, extent);
#endif
    static_cast<void>(lanes);
    AddPlainly(part.subspan(done), extent);
    if (extent.top_field == kFieldMax) return std::nullopt;
    exponent = std::max(exponent, kFieldOfOne - static_cast<int>(extent.low_field));
    // Every value is below 2^top.
    const int top =
        std::max(static_cast<int>(extent.top_field) - kFieldOfOne + 1, -kBinaryExponentMax);
    if (exponent > kBinaryExponentMax || top + exponent > kScaledBitsMax) return std::nullopt;
  }
  return exponent;
}

std::optional<std::int16_t> ScaleByTwo(std::span<const double> values, std::int64_t* integers,
                                       Lanes lanes) {
  const std::optional<int> exponent = MeasureBinary(values, lanes);
  if (!exponent) return std::nullopt;
  const double power = std::ldexp(1.0, *exponent);
  // Nothing is rounded: a double times a power of two is a double, and this one whole.
  for (std::size_t i = 0; i < values.size(); ++i) {
    integers[i] = static_cast<std::int64_t>(values[i] * power);
  }
  return static_cast<std::int16_t>(-*exponent);
}

}  // namespace

bool ScaleValues(std::span<const double> values, ScaledValues& scaled, Lanes lanes) {
  scaled.integers.resize(values.size());
  std::optional<std::int16_t> exponent = ScaleByTen(values, scaled.integers.data(), lanes);
  if (!exponent) exponent = ScaleByTwo(values, scaled.integers.data(), lanes);
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
