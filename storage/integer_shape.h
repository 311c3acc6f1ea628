// IntegerShape: what the price of each form depends on, measured in a few passes over a vector of
// integers. A core; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "storage/wide.h"

namespace stepwell {

// Of one pass over a vector: smallest, largest, and the sum, which wraps around where 64 bits do not hold it.
struct IntegerTotals {
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::int64_t sum = 0;
};

// Smallest, largest, and the greatest common divisor of all differences (1 for a constant).
struct IntegerRange {
  std::int64_t min = 0;
  std::int64_t max = 0;
  std::uint64_t factor = 1;
  // False where max - min does not fit an int64; factor is then unknown.
  bool narrow = true;

  // How many bits (k - min) / factor takes. REQUIRES: narrow.
  int Width() const;
};

struct IntegerShape {
  IntegerRange range;
  // Of the differences of neighbours.
  std::int64_t delta_min = 0;
  std::int64_t delta_max = 0;
  std::size_t run_count = 0;
  std::size_t zero_count = 0;
};

// The straight line through the first and the last integer, and how far the others are from it.
struct IntegerLine {
  std::int64_t step = 0;
  // Of integer - (first + index * step).
  IntegerRange residual;
};

// REQUIRES: integers is not empty.
IntegerTotals TotalsOf(std::span<const std::int64_t> integers, Lanes lanes = WidestLanes());
// REQUIRES: integers is not empty, `totals` are theirs.
IntegerRange MeasureRange(std::span<const std::int64_t> integers, const IntegerTotals& totals);
IntegerRange MeasureRange(std::span<const std::int64_t> integers);
// REQUIRES: integers is not empty, `range` is theirs and narrow.
IntegerShape MeasureShape(std::span<const std::int64_t> integers, const IntegerRange& range,
                          Lanes lanes = WidestLanes());
// Where each run of equal integers ends: the index behind its last one. REQUIRES: integers is not empty, and
// `run_count` is theirs, as MeasureShape counts.
std::vector<std::uint32_t> RunEnds(std::span<const std::int64_t> integers, std::size_t run_count,
                                   Lanes lanes = WidestLanes());
// Whether no term of a line overflows in PostgreSQL either.
bool LineFits(const IntegerRange& range);
// Nothing where its residual takes more than `width_max` bits, which is mostly found after some hundred
// integers. REQUIRES: two integers or more, LineFits(their range).
std::optional<IntegerLine> MeasureLine(std::span<const std::int64_t> integers, int width_max,
                                       Lanes lanes = WidestLanes());

}  // namespace stepwell
