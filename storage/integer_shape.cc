#include "storage/integer_shape.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "storage/bit_string.h"
#include "storage/exact_divisor.h"

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

// What of `factor` divides `distance` of each integer. From the whole span on most vectors are down to 1
// after a few samples; others are gone through to their end.
template <typename DistanceOf>
std::uint64_t CommonFactor(std::span<const std::int64_t> integers, std::uint64_t factor,
                           const DistanceOf& distance) {
  if (factor <= 1) return 1;
  ExactDivisor by(factor);
  for (const std::int64_t integer : integers) {
    const std::uint64_t each = distance(integer);
    if (by.Divides(each)) continue;
    factor = std::gcd(factor, each);
    if (factor == 1) break;
    by = ExactDivisor(factor);
  }
  return factor;
}

// Least and greatest.
struct Bounds {
  explicit Bounds(std::int64_t first) : least(first), greatest(first) {}
  void Add(std::int64_t integer) {
    least = std::min(least, integer);
    greatest = std::max(greatest, integer);
  }
  std::int64_t least;
  std::int64_t greatest;
};

// What neighbours tell, of all from the second integer on.
struct Neighbours {
  explicit Neighbours(std::int64_t first_delta) : deltas(first_delta) {}
  void Add(std::int64_t before, std::int64_t integer) {
    const std::int64_t delta = integer - before;
    deltas.Add(delta);
    change_count += delta != 0 ? 1 : 0;
    zero_count += integer == 0 ? 1 : 0;
  }
  Bounds deltas;
  std::size_t change_count = 0;
  std::size_t zero_count = 0;
};

#if defined(STEPWELL_WIDE)
// Takes what of `integers` fills whole vectors, and says how many that were.
STEPWELL_WIDE std::size_t AddWide(std::span<const std::int64_t> integers, Bounds& bounds,
                                  std::uint64_t& sum) {
  FourIntegers least = FourIntegers{} + bounds.least;
  FourIntegers greatest = FourIntegers{} + bounds.greatest;
  FourWords sums = {};  // unsigned: they may wrap
  std::size_t i = 0;
  for (; i + kFour <= integers.size(); i += kFour) {
    const FourIntegers x = LoadFour(integers.data() + i);
    least = x < least ? x : least;
    greatest = x > greatest ? x : greatest;
    sums += WordsOf(x);
  }
  for (std::size_t lane = 0; lane < kFour; ++lane) {
    bounds.Add(least[lane]);
    bounds.Add(greatest[lane]);
    sum += sums[lane];
  }
  return i;
}

// The same from the second integer on.
STEPWELL_WIDE std::size_t AddWide(std::span<const std::int64_t> integers, Neighbours& neighbours) {
  Bounds& deltas = neighbours.deltas;
  FourIntegers least = FourIntegers{} + deltas.least;
  FourIntegers greatest = FourIntegers{} + deltas.greatest;
  FourIntegers changes = {};  // each true is -1
  FourIntegers zeros = {};
  std::size_t i = 1;
  for (; i + kFour <= integers.size(); i += kFour) {
    const FourIntegers before = LoadFour(integers.data() + i - 1);
    const FourIntegers x = LoadFour(integers.data() + i);
    const FourIntegers delta = x - before;
    least = delta < least ? delta : least;
    greatest = delta > greatest ? delta : greatest;
    changes -= delta != 0;
    zeros -= x == 0;
  }
  for (std::size_t lane = 0; lane < kFour; ++lane) {
    deltas.Add(least[lane]);
    deltas.Add(greatest[lane]);
    neighbours.change_count += static_cast<std::size_t>(changes[lane]);
    neighbours.zero_count += static_cast<std::size_t>(zeros[lane]);
  }
  return i;
}

// Of the ends of runs those that whole vectors tell, appended at `end`; says how many integers have been looked at.
STEPWELL_WIDE std::size_t AddRunEndsWide(std::span<const std::int64_t> integers,
                                         std::uint32_t*& end) {
  std::size_t i = 0;
  for (; i + kFour < integers.size(); i += kFour) {
    unsigned changes = SignsOf(LoadFour(integers.data() + i) != LoadFour(integers.data() + i + 1));
    for (; changes != 0; changes &= changes - 1) {
      *end++ =
          static_cast<std::uint32_t>(i + 1) + static_cast<std::uint32_t>(std::countr_zero(changes));
    }
  }
  return i;
}
#endif

// REQUIRES: two integers or more.
Neighbours NeighboursOf(std::span<const std::int64_t> integers, Lanes lanes) {
  Neighbours neighbours(integers[1] - integers[0]);
  std::size_t done = 1;
#if defined(STEPWELL_WIDE)
  if (lanes == Lanes::kFour) done = AddWide(integers, neighbours);
#endif
  static_cast<void>(lanes);
  for (std::size_t i = done; i < integers.size(); ++i) {
    neighbours.Add(integers[i - 1], integers[i]);
  }
  return neighbours;
}

// Of the residuals of a line, while they pass by.
struct Residuals {
  // How many bits they take at least, however the others lie: their factor divides `factor`.
  int WidthAtLeast() const {
    return BitWidth(Distance(bounds.least, bounds.greatest) / std::max<std::uint64_t>(factor, 1));
  }
  Bounds bounds{0};
  // Of the first ones that differ at all.
  std::uint64_t factor = 0;
};

constexpr std::size_t kLookInterval = 64;

// False as soon as they take more than `width_max` bits.
bool AddResiduals(std::span<const std::int64_t> integers, std::int64_t step, int width_max,
                  Residuals& residuals) {
  std::int64_t at = integers.front();
  for (std::size_t begin = 0; begin < integers.size(); begin += kLookInterval) {
    const auto part = integers.subspan(begin, std::min(kLookInterval, integers.size() - begin));
    const bool factor_is_known = residuals.factor != 0;
    for (const std::int64_t integer : part) {
      const std::int64_t residual = integer - at;
      residuals.bounds.Add(residual);
      if (!factor_is_known && residuals.factor != 1) {
        Narrow(residuals.factor, residual < 0 ? Distance(residual, 0) : Distance(0, residual));
      }
      at += step;
    }
    if (residuals.WidthAtLeast() > width_max) return false;
  }
  return true;
}

}  // namespace

int IntegerRange::Width() const { return BitWidth(Distance(min, max) / factor); }

IntegerTotals TotalsOf(std::span<const std::int64_t> integers, Lanes lanes) {
  STEPWELL_CHECK(!integers.empty());
  Bounds bounds(integers[0]);
  std::uint64_t sum = 0;
  std::size_t done = 0;
#if defined(STEPWELL_WIDE)
  if (lanes == Lanes::kFour) done = AddWide(integers, bounds, sum);
#endif
  static_cast<void>(lanes);
  for (std::size_t i = done; i < integers.size(); ++i) {
    bounds.Add(integers[i]);
    sum += static_cast<std::uint64_t>(integers[i]);
  }
  return {bounds.least, bounds.greatest, static_cast<std::int64_t>(sum)};
}

IntegerRange MeasureRange(std::span<const std::int64_t> integers) {
  return MeasureRange(integers, TotalsOf(integers));
}

IntegerRange MeasureRange(std::span<const std::int64_t> integers, const IntegerTotals& totals) {
  STEPWELL_CHECK(!integers.empty());
  IntegerRange range{totals.min, totals.max, 1, true};
  range.narrow = Distance(range.min, range.max) <= std::numeric_limits<std::int64_t>::max();
  if (range.narrow) {
    range.factor = CommonFactor(integers, Distance(range.min, range.max),
                                [&](std::int64_t integer) { return Distance(range.min, integer); });
  }
  return range;
}

IntegerShape MeasureShape(std::span<const std::int64_t> integers, const IntegerRange& range,
                          Lanes lanes) {
  STEPWELL_CHECK(!integers.empty() && range.narrow);
  IntegerShape shape{.range = range, .run_count = 1};
  shape.zero_count = integers[0] == 0 ? 1 : 0;
  if (integers.size() == 1) return shape;
  const Neighbours neighbours = NeighboursOf(integers, lanes);
  shape.delta_min = neighbours.deltas.least;
  shape.delta_max = neighbours.deltas.greatest;
  shape.run_count += neighbours.change_count;
  shape.zero_count += neighbours.zero_count;
  return shape;
}

std::vector<std::uint32_t> RunEnds(std::span<const std::int64_t> integers, std::size_t run_count,
                                   Lanes lanes) {
  STEPWELL_CHECK(!integers.empty());
  std::vector<std::uint32_t> ends(run_count);
  std::uint32_t* end = ends.data();
  std::size_t done = 0;
#if defined(STEPWELL_WIDE)
  if (lanes == Lanes::kFour) done = AddRunEndsWide(integers, end);
#endif
  static_cast<void>(lanes);
  for (std::size_t i = done; i + 1 < integers.size(); ++i) {
    if (integers[i] != integers[i + 1]) *end++ = static_cast<std::uint32_t>(i + 1);
  }
  *end++ = static_cast<std::uint32_t>(integers.size());
  STEPWELL_CHECK(end == ends.data() + run_count);
  return ends;
}

bool LineFits(const IntegerRange& range) { return range.min >= -kLineMax && range.max <= kLineMax; }

std::optional<IntegerLine> MeasureLine(std::span<const std::int64_t> integers, int width_max) {
  STEPWELL_CHECK(integers.size() >= 2);
  const std::int64_t first = integers.front();
  IntegerLine line;
  // Rounded: a step that is 1 too small would drift by as many units as there are integers.
  const auto steps = static_cast<std::int64_t>(integers.size() - 1);
  const std::int64_t rise = integers.back() - first;
  line.step = (rise + (rise < 0 ? -steps : steps) / 2) / steps;
  Residuals residuals;
  if (!AddResiduals(integers, line.step, width_max, residuals)) return std::nullopt;
  line.residual.min = residuals.bounds.least;
  line.residual.max = residuals.bounds.greatest;
  std::int64_t at = first - line.step;
  line.residual.factor = CommonFactor(integers, Distance(line.residual.min, line.residual.max),
                                      [&](std::int64_t integer) {
                                        at += line.step;
                                        return Distance(line.residual.min, integer - at);
                                      });
  return line;
}

}  // namespace stepwell
