// ScaledColumn: the values of a column as integers under a divisor, with their totals: made once for
// whoever encodes, sums and rolls them up. Its memory stays from one column to the next. A core; confined to
// one thread.
//
//   ScaledColumn scaled;
//   scaled.Set(values);
//   if (scaled.sums_exactly()) sum = scaled.ValueOf(scaled.totals().sum);
#pragma once

#include <cstdint>
#include <span>

#include "storage/integer_shape.h"
#include "storage/value_scale.h"

namespace stepwell {

class ScaledColumn {
 public:
  ScaledColumn() = default;
  explicit ScaledColumn(std::span<const double> values) { Set(values); }

  void Set(std::span<const double> values);

  // False where no divisor gives all values back (NaN, -0, ...), or where there are none; nothing below
  // is to be asked then.
  bool exists() const { return exists_; }
  std::span<const std::int64_t> integers() const { return scaled_.integers; }
  std::int16_t divisor_exponent() const { return scaled_.divisor_exponent; }
  const IntegerTotals& totals() const { return totals_; }
  // Whether the sum of any of the integers is a double as well.
  bool sums_exactly() const { return sums_exactly_; }
  // What an integer, or a sum of them, stands for.
  double ValueOf(std::int64_t integer) const { return static_cast<double>(integer) / divisor_; }

 private:
  ScaledValues scaled_;
  IntegerTotals totals_;
  double divisor_ = 1;
  bool exists_ = false;
  bool sums_exactly_ = false;
};

}  // namespace stepwell
