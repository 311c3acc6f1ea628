#include "storage/integer_frame.h"

#include <algorithm>

namespace stepwell {
namespace {

// The greatest integer of `width` bits.
std::int64_t WidestOf(int width) {
  return static_cast<std::int64_t>((std::uint64_t{1} << width) - 1);
}

}  // namespace

bool HoldsAll(const IntegerFrame& frame, const BitReader& reader, int width, std::size_t count) {
  if (frame.Holds(WidestOf(width))) return true;
  std::uint64_t greatest = 0;
  reader.ReadAll(count, [&](std::size_t, std::uint64_t x) { greatest = std::max(greatest, x); });
  return frame.Holds(static_cast<std::int64_t>(greatest));
}

bool HoldsSums(const IntegerFrame& frame, const BitReader& reader, const EncodedVector& encoded,
               std::size_t count) {
  // First: how far could they go at most, one after the other?
  const std::int64_t lowest = encoded.dictionary[0];
  const auto steps = static_cast<std::int64_t>(count);
  std::int64_t highest = 0;
  std::int64_t down = 0;
  std::int64_t up = 0;
  if (!__builtin_add_overflow(lowest, WidestOf(encoded.width), &highest) &&
      !__builtin_mul_overflow(std::min(lowest, std::int64_t{0}), steps, &down) &&
      !__builtin_mul_overflow(std::max(highest, std::int64_t{0}), steps, &up) &&
      frame.Holds(down) && frame.Holds(up)) {
    return true;
  }
  bool holds = true;
  std::int64_t x = 0;
  reader.ReadAll(count, [&](std::size_t, std::uint64_t read) {
    std::int64_t delta = 0;
    holds = holds && !__builtin_add_overflow(lowest, static_cast<std::int64_t>(read), &delta) &&
            !__builtin_add_overflow(x, delta, &x) && frame.Holds(x);
  });
  return holds;
}

bool HoldsLine(const IntegerFrame& frame, const BitReader& reader, const EncodedVector& encoded,
               std::size_t count) {
  if (count == 0) return true;
  const std::int64_t step = encoded.dictionary[0];
  std::int64_t rise = 0;
  std::int64_t end = 0;
  if (__builtin_mul_overflow(step, static_cast<std::int64_t>(count) - 1, &rise) ||
      __builtin_add_overflow(encoded.base, rise, &end)) {
    return false;
  }
  const std::int64_t widest = WidestOf(encoded.width);
  if (frame.Holds(widest) && frame.Holds(end, widest)) return true;
  bool holds = true;
  reader.ReadAll(count, [&](std::size_t i, std::uint64_t x) {
    holds = holds && frame.Holds(encoded.base + step * static_cast<std::int64_t>(i),
                                 static_cast<std::int64_t>(x));
  });
  return holds;
}

}  // namespace stepwell
