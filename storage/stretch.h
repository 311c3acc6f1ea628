// Stretch: how many ticks go into one row. The bounds are what readers count on: a row begins at
// most kSlowStretchSpanUs before any of its samples. Pure.
//
//   for (const std::size_t count : CutStretches(times)) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace stepwell {

inline constexpr std::size_t kStretchTicksMax = 3600;
inline constexpr std::int64_t kStretchSpanUs = 3'600'000'000;
// With fewer ticks than this in an hour, a row may span a day: a row costs what 60 samples cost.
inline constexpr std::size_t kSlowTicksPerHour = 60;
inline constexpr std::int64_t kSlowStretchSpanUs = 24 * kStretchSpanUs;

// Lengths of the stretches into which ascending times fall; they add up to times.size().
// REQUIRES: `times_us` ascends.
std::vector<std::size_t> CutStretches(std::span<const std::int64_t> times_us);

// How many of them have fewer than `tick_count` ticks. REQUIRES: `times_us` ascends.
std::int64_t CountThinStretches(std::span<const std::int64_t> times_us, std::size_t tick_count);

// From the least to the greatest of times in any order: who looks at stretches looks here first.
class TimeSpan {
 public:
  void Add(std::span<const std::int64_t> times_us);
  // No time is further from another than a row may span; true of no times, too.
  bool FitsARow() const;

 private:
  std::int64_t first_us_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_us_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace stepwell
