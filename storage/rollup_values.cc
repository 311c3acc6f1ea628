#include "storage/rollup_values.h"

#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/status_macros.h"
#include "storage/value_scale.h"
#include "storage/vector_codec.h"

namespace stepwell {
namespace {

using Integers = std::vector<std::int64_t>;
using Doubles = std::vector<double>;

// How often the min is in a statistic: as often as it has summands.
std::int64_t Summands(bool is_sum, const Integers& numbers, std::size_t bucket) {
  return is_sum ? numbers[bucket] : 1;
}

bool SameBits(const Doubles& left, const Doubles& right) {
  return left.size() == right.size() &&
         std::memcmp(left.data(), right.data(), left.size() * sizeof(double)) == 0;
}

// integers - summands * mins; nothing where int64 cannot hold that.
std::optional<Integers> FromMins(std::span<const std::int64_t> integers,
                                 std::span<const std::int64_t> mins, bool is_sum,
                                 const Integers& numbers) {
  Integers differences(integers.size());
  for (std::size_t i = 0; i < integers.size(); ++i) {
    std::int64_t base = 0;
    if (__builtin_mul_overflow(mins[i], Summands(is_sum, numbers, i), &base) ||
        __builtin_sub_overflow(integers[i], base, &differences[i])) {
      return std::nullopt;
    }
  }
  return differences;
}

// All four under one divisor, or none.
class SharedScale {
 public:
  explicit SharedScale(const RollupColumn& column) : count_(column.mins.size()) {
    Doubles all;
    all.reserve(4 * count_);
    for (const Doubles* values : {&column.mins, &column.maxs, &column.sums, &column.lasts}) {
      all.insert(all.end(), values->begin(), values->end());
    }
    scaled_ = ScaleValues(all);
  }

  bool exists() const { return scaled_.has_value(); }
  std::int16_t divisor_exponent() const { return scaled_->divisor_exponent; }
  // 0 ... 3: mins, maxs, sums, lasts.
  std::span<const std::int64_t> integers(std::size_t which) const {
    return std::span(scaled_->integers).subspan(which * count_, count_);
  }

 private:
  const std::size_t count_;
  std::optional<ScaledValues> scaled_;
};

// What the mins are k of, where some vector counts from them.
absl::StatusOr<Integers> DecodeBases(const EncodedRollupColumn& encoded, std::size_t count) {
  const auto counts = [&](const std::optional<EncodedVector>& vector, std::int16_t flag) {
    return vector.has_value() && (encoded.relative & flag) != 0;
  };
  if (!counts(encoded.maxs, kRelativeMaxs) && !counts(encoded.sums, kRelativeSums) &&
      !counts(encoded.lasts, kRelativeLasts)) {
    return Integers();
  }
  EncodedVector undivided = encoded.mins;
  undivided.divisor_exponent = 0;
  return DecodeIntegers(undivided, count);
}

absl::Status DecodeOne(const EncodedRollupColumn& encoded,
                       const std::optional<EncodedVector>& vector, std::int16_t flag,
                       const Integers& numbers, const Integers& bases, const Doubles& mins,
                       Doubles& values) {
  if (!vector.has_value()) {
    values = mins;
    return absl::OkStatus();
  }
  if ((encoded.relative & flag) == 0) {
    STEPWELL_ASSIGN_OR_RETURN(values, DecodeValues(*vector, mins.size()));
    return absl::OkStatus();
  }
  STEPWELL_ASSIGN_OR_RETURN(const Integers differences, DecodeIntegers(*vector, mins.size()));
  // DecodeValues took the mins, so their divisor is in range.
  const double divisor = Divisor(encoded.mins.divisor_exponent);
  values.resize(mins.size());
  for (std::size_t i = 0; i < mins.size(); ++i) {
    std::int64_t k = 0;
    if (__builtin_mul_overflow(bases[i], Summands(flag == kRelativeSums, numbers, i), &k) ||
        __builtin_add_overflow(k, differences[i], &k)) {
      return absl::DataLossError("rollup: a value beyond 63 bits");
    }
    values[i] = static_cast<double>(k) / divisor;
  }
  return absl::OkStatus();
}

}  // namespace

void EncodeRollupValues(const RollupColumn& column, const Integers& numbers,
                        EncodedRollupColumn& encoded) {
  const SharedScale scale(column);
  if (scale.exists()) {
    encoded.mins = EncodeIntegers(scale.integers(0));
    encoded.mins.divisor_exponent = scale.divisor_exponent();
  } else {
    encoded.mins = EncodeValues(column.mins);
  }
  const struct {
    const Doubles& values;
    std::int16_t flag;
    std::optional<EncodedVector>& vector;
  } others[] = {{column.maxs, kRelativeMaxs, encoded.maxs},
                {column.sums, kRelativeSums, encoded.sums},
                {column.lasts, kRelativeLasts, encoded.lasts}};
  for (std::size_t which = 0; which < std::size(others); ++which) {
    const auto& other = others[which];
    if (SameBits(other.values, column.mins)) continue;
    std::optional<Integers> differences;
    if (scale.exists()) {
      differences = FromMins(scale.integers(1 + which), scale.integers(0),
                             other.flag == kRelativeSums, numbers);
    }
    if (!differences.has_value()) {
      other.vector = EncodeValues(other.values);
      continue;
    }
    EncodedChoice choice = EncodeCheaper(other.values, scale.integers(1 + which),
                                         scale.divisor_exponent(), *differences);
    other.vector = std::move(choice.vector);
    if (choice.is_instead) {
      encoded.relative = static_cast<std::int16_t>(encoded.relative | other.flag);
    }
  }
}

absl::Status DecodeRollupValues(const EncodedRollupColumn& encoded, const Integers& numbers,
                                RollupColumn& column) {
  STEPWELL_ASSIGN_OR_RETURN(column.mins, DecodeValues(encoded.mins, numbers.size()));
  STEPWELL_ASSIGN_OR_RETURN(const Integers bases, DecodeBases(encoded, numbers.size()));
  const auto decode = [&](const std::optional<EncodedVector>& vector, std::int16_t flag,
                          Doubles& values) {
    return DecodeOne(encoded, vector, flag, numbers, bases, column.mins, values);
  };
  STEPWELL_RETURN_IF_ERROR(decode(encoded.maxs, kRelativeMaxs, column.maxs));
  STEPWELL_RETURN_IF_ERROR(decode(encoded.sums, kRelativeSums, column.sums));
  return decode(encoded.lasts, kRelativeLasts, column.lasts);
}

}  // namespace stepwell
