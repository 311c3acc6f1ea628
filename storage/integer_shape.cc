#include "storage/integer_shape.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "storage/bit_string.h"
#include "storage/exact_divisor.h"

namespace stepwell {
namespace {

constexpr std::int64_t kLineMax = std::int64_t{1} << 60;

std::uint64_t Distance(std::int64_t low, std::int64_t high) {
  return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
}

// The greatest common divisor. std::gcd asks in each round which of the two is greater, a branch that nobody can
// predict: three times as slow.
std::uint64_t CommonDivisor(std::uint64_t left, std::uint64_t right) {
  if (left == 0 || right == 0) return left | right;
  const int twos = std::countr_zero(left | right);
  left >>= std::countr_zero(left);
  while (right != 0) {
    right >>= std::countr_zero(right);
    const std::uint64_t least = std::min(left, right);
    right = std::max(left, right) - least;
    left = least;
  }
  return left << twos;
}

// Most factors are 1, and a division costs more than all else that is done with a range.
std::uint64_t Quotient(std::uint64_t distance, std::uint64_t factor) {
  return factor <= 1 ? distance : distance / factor;
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
    factor = CommonDivisor(factor, each);
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

// Residuals of a line, while they pass by.
class Residuals {
 public:
  Residuals(std::int64_t first, std::int64_t step) : at_(first), step_(step) {}

  // The next ones.
  void Add(std::span<const std::int64_t> integers, Lanes lanes) {
    std::size_t done = 0;
#if defined(STEPWELL_WIDE)
    if (lanes == Lanes::kFour) done = AddWide(integers);
#endif
    static_cast<void>(lanes);
    for (std::size_t i = done; i < integers.size(); ++i) bounds_.Add(integers[i] - On(i));
    at_ = On(integers.size());
  }

  // Whether they take more than `width` bits, however the others lie. `latest`: those of the last Add(), which
  // are asked for their factor only where it matters.
  bool IsWiderThan(int width, std::span<const std::int64_t> latest) {
    const std::uint64_t span = Distance(bounds_.least, bounds_.greatest);
    if (BitWidth(span) <= width) return false;
    std::size_t i = 0 - latest.size();
    factor_ = CommonFactor(latest, CommonDivisor(factor_, span), [&](std::int64_t integer) {
      return static_cast<std::uint64_t>(std::abs(integer - On(i++)));
    });
    return BitWidth(Quotient(span, factor_)) > width;
  }
  const Bounds& bounds() const { return bounds_; }

 private:
  // The line so many integers on, or back. Wraps, as it may behind the last of them.
  std::int64_t On(std::size_t i) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(at_) +
                                     i * static_cast<std::uint64_t>(step_));
  }

#if defined(STEPWELL_WIDE)
  STEPWELL_WIDE std::size_t AddWide(std::span<const std::int64_t> integers) {
    FourIntegers least = FourIntegers{} + bounds_.least;
    FourIntegers greatest = FourIntegers{} + bounds_.greatest;
    FourIntegers line = {On(0), On(1), On(2), On(3)};
    const FourWords rise = FourWords{} + WordsOf(FourIntegers{} + step_) * kFour;
    std::size_t i = 0;
    for (; i + kFour <= integers.size(); i += kFour) {
      const FourIntegers residual = LoadFour(integers.data() + i) - line;
      least = residual < least ? residual : least;
      greatest = residual > greatest ? residual : greatest;
      line = IntegersOf(WordsOf(line) + rise);
    }
    for (std::size_t lane = 0; lane < kFour; ++lane) {
      bounds_.Add(least[lane]);
      bounds_.Add(greatest[lane]);
    }
    return i;
  }
#endif

  std::int64_t at_;
  const std::int64_t step_;
  // The first one is 0.
  Bounds bounds_{0};
  // Of spans and of those that were looked at for it: the common one of all divides it. 0: of none yet.
  std::uint64_t factor_ = 0;
};

constexpr std::size_t kLookInterval = 64;

// Nothing as soon as they take more than `width_max` bits.
std::optional<Bounds> BoundsOfResiduals(std::span<const std::int64_t> integers, std::int64_t step,
                                        int width_max, Lanes lanes) {
  Residuals residuals(integers.front(), step);
  for (std::size_t begin = 0; begin < integers.size(); begin += kLookInterval) {
    const auto part = integers.subspan(begin, std::min(kLookInterval, integers.size() - begin));
    residuals.Add(part, lanes);
    if (residuals.IsWiderThan(width_max, part)) return std::nullopt;
  }
  return residuals.bounds();
}

}  // namespace

int IntegerRange::Width() const { return BitWidth(Quotient(Distance(min, max), factor)); }

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

std::optional<IntegerLine> MeasureLine(std::span<const std::int64_t> integers, int width_max,
                                       Lanes lanes) {
  STEPWELL_CHECK(integers.size() >= 2);
  const std::int64_t first = integers.front();
  IntegerLine line;
  // Rounded: a step that is 1 too small would drift by as many units as there are integers.
  const auto steps = static_cast<std::int64_t>(integers.size() - 1);
  const std::int64_t rise = integers.back() - first;
  line.step = (rise + (rise < 0 ? -steps : steps) / 2) / steps;
  const std::optional<Bounds> bounds = BoundsOfResiduals(integers, line.step, width_max, lanes);
  if (!bounds) return std::nullopt;
  line.residual.min = bounds->least;
  line.residual.max = bounds->greatest;
  std::int64_t at = first - line.step;
  line.residual.factor = CommonFactor(integers, Distance(line.residual.min, line.residual.max),
                                      [&](std::int64_t integer) {
                                        at += line.step;
                                        return Distance(line.residual.min, integer - at);
                                      });
  return line;
}

}  // namespace stepwell
