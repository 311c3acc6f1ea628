#include "storage/scaled_column.h"

namespace stepwell {
namespace {

constexpr std::int64_t kExactMax = INT64_C(1) << 53;  // up to here doubles hold every integer

}  // namespace

void ScaledColumn::Set(std::span<const double> values) {
  exists_ = !values.empty() && ScaleValues(values, scaled_);
  sums_exactly_ = false;
  if (!exists_) return;
  totals_ = TotalsOf(scaled_.integers);
  divisor_ = Divisor(scaled_.divisor_exponent);
  const auto count = static_cast<std::int64_t>(values.size());
  sums_exactly_ = totals_.min >= -kExactMax / count && totals_.max <= kExactMax / count;
}

}  // namespace stepwell
