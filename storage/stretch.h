// Stretch: how many ticks go into one row. The bounds are what readers count on: a row begins at
// most kSlowStretchSpanUs before any of its samples. Pure.
//
//   for (const std::size_t count : CutStretches(times)) ...
#pragma once

#include <cstddef>
#include <cstdint>
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

}  // namespace stepwell
