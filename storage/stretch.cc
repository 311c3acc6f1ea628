#include "storage/stretch.h"

#include <algorithm>

namespace stepwell {
namespace {

// How many of the first `count_max` times lie within `span_us` of the first one. The difference of
// two times of a hostile client need not fit into 63 bits.
std::size_t CountWithin(std::span<const std::int64_t> times, std::int64_t span_us,
                        std::size_t count_max) {
  const auto first = static_cast<std::uint64_t>(times.front());
  const std::span<const std::int64_t> head = times.first(std::min(times.size(), count_max));
  const auto beyond = std::partition_point(head.begin(), head.end(), [&](std::int64_t time) {
    return static_cast<std::uint64_t>(time) - first <= static_cast<std::uint64_t>(span_us);
  });
  return static_cast<std::size_t>(beyond - head.begin());
}

}  // namespace

std::vector<std::size_t> CutStretches(std::span<const std::int64_t> times_us) {
  std::vector<std::size_t> lengths;
  while (!times_us.empty()) {
    std::size_t length = CountWithin(times_us, kStretchSpanUs, kStretchTicksMax);
    if (length < kSlowTicksPerHour) {
      length = CountWithin(times_us, kSlowStretchSpanUs, kStretchTicksMax);
    }
    lengths.push_back(length);
    times_us = times_us.subspan(length);
  }
  return lengths;
}

std::int64_t CountThinStretches(std::span<const std::int64_t> times_us, std::size_t tick_count) {
  const std::vector<std::size_t> lengths = CutStretches(times_us);
  return std::count_if(lengths.begin(), lengths.end(),
                       [&](std::size_t length) { return length < tick_count; });
}

void TimeSpan::Add(std::span<const std::int64_t> times_us) {
  for (const std::int64_t time_us : times_us) {
    first_us_ = std::min(first_us_, time_us);
    last_us_ = std::max(last_us_, time_us);
  }
}

bool TimeSpan::FitsARow() const {
  if (first_us_ > last_us_) return true;
  // As above: the difference need not fit into 63 bits.
  return static_cast<std::uint64_t>(last_us_) - static_cast<std::uint64_t>(first_us_) <=
         static_cast<std::uint64_t>(kSlowStretchSpanUs);
}

}  // namespace stepwell
