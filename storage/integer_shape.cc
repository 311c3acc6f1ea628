#include "storage/integer_shape.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "storage/bit_string.h"

namespace stepwell {
namespace {

constexpr std::int64_t kLineMax = std::int64_t{1} << 60;

std::uint64_t Distance(std::int64_t low, std::int64_t high) {
  return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
}

// Adds `distance` to what `factor` divides; 0 divides nothing yet.
void Narrow(std::uint64_t& factor, std::uint64_t distance) {
  if (factor == 0 ? distance != 0 : distance % factor != 0) factor = std::gcd(factor, distance);
}

// Starts from the whole span, so that most vectors are down to 1 after a few samples.
std::uint64_t CommonFactor(std::span<const std::int64_t> integers, const IntegerRange& range) {
  std::uint64_t factor = Distance(range.min, range.max);
  for (const std::int64_t integer : integers) {
    if (factor <= 1) break;
    Narrow(factor, Distance(range.min, integer));
  }
  return std::max<std::uint64_t>(factor, 1);
}

}  // namespace

int IntegerRange::Width() const { return BitWidth(Distance(min, max) / factor); }

IntegerRange MeasureRange(std::span<const std::int64_t> integers) {
  STEPWELL_CHECK(!integers.empty());
  IntegerRange range{integers[0], integers[0], 1, true};
  for (const std::int64_t integer : integers) {
    range.min = std::min(range.min, integer);
    range.max = std::max(range.max, integer);
  }
  range.narrow = Distance(range.min, range.max) <= std::numeric_limits<std::int64_t>::max();
  if (range.narrow) range.factor = CommonFactor(integers, range);
  return range;
}

IntegerShape MeasureShape(std::span<const std::int64_t> integers, const IntegerRange& range) {
  STEPWELL_CHECK(!integers.empty() && range.narrow);
  IntegerShape shape{.range = range, .run_count = 1, .run_length_max = 1};
  shape.zero_count = integers[0] == 0 ? 1 : 0;
  if (integers.size() == 1) return shape;
  shape.delta_min = shape.delta_max = integers[1] - integers[0];
  std::size_t run_start = 0;
  for (std::size_t i = 1; i < integers.size(); ++i) {
    const std::int64_t delta = integers[i] - integers[i - 1];
    shape.delta_min = std::min(shape.delta_min, delta);
    shape.delta_max = std::max(shape.delta_max, delta);
    shape.zero_count += integers[i] == 0 ? 1 : 0;
    if (delta == 0) continue;
    shape.run_length_max = std::max(shape.run_length_max, i - run_start);
    run_start = i;
    ++shape.run_count;
  }
  shape.run_length_max = std::max(shape.run_length_max, integers.size() - run_start);
  return shape;
}

bool LineFits(const IntegerRange& range) { return range.min >= -kLineMax && range.max <= kLineMax; }

IntegerLine MeasureLine(std::span<const std::int64_t> integers) {
  STEPWELL_CHECK(integers.size() >= 2);
  const std::int64_t first = integers.front();
  IntegerLine line;
  // Rounded: a step that is 1 too small would drift by as many units as there are integers.
  const auto steps = static_cast<std::int64_t>(integers.size() - 1);
  const std::int64_t rise = integers.back() - first;
  line.step = (rise + (rise < 0 ? -steps : steps) / 2) / steps;
  std::int64_t at = first;
  for (const std::int64_t integer : integers) {
    line.residual.min = std::min(line.residual.min, integer - at);
    line.residual.max = std::max(line.residual.max, integer - at);
    at += line.step;
  }
  std::uint64_t factor = Distance(line.residual.min, line.residual.max);
  at = first;
  for (const std::int64_t integer : integers) {
    if (factor <= 1) break;
    Narrow(factor, Distance(line.residual.min, integer - at));
    at += line.step;
  }
  line.residual.factor = std::max<std::uint64_t>(factor, 1);
  return line;
}

}  // namespace stepwell
