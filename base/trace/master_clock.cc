#include "base/trace/master_clock.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace stepwell {
namespace {

constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;
// Of two clocks that have anything in common; sums of several fit into 64 bits.
constexpr std::int64_t kAheadMaxNs = 24 * 366 * kHourNs;

// In less than that no exchange shows a drift.
constexpr double kShownInNs = 1e9;

double ApartNs(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns) - static_cast<double>(from_ns);
}

std::int64_t DriftNs(double apart_ns) {
  return static_cast<std::int64_t>(std::max(apart_ns, 0.0) * kClockDriftMax) + 1;
}

// Of `sign` times how far the master is ahead: the most.
std::int64_t High(const MasterClock::Bounds& ahead, std::int64_t sign) {
  return sign > 0 ? ahead.high_ns : -ahead.low_ns;
}

}  // namespace

// What `by` allows at another time, grown by the drift, it allows here. False: that contradicts it.
bool MasterClock::Narrow(Point& point, const Point& by) {
  const double apart = ApartNs(by.at_ns, point.at_ns);
  const std::int64_t drift = DriftNs(apart < 0 ? -apart : apart);
  point.ahead.low_ns = std::max(point.ahead.low_ns, by.ahead.low_ns - drift);
  point.ahead.high_ns = std::min(point.ahead.high_ns, by.ahead.high_ns + drift);
  return point.ahead.low_ns <= point.ahead.high_ns;
}

// One of both sides, and a line's drift from which what is ahead is counted.
struct MasterClock::Side {
  std::int64_t sign = 1;
  std::int64_t from_ns = 0;
  double drift = 0;

  // What is left of `high` at a time, without what the line has drifted there; no less than is true.
  std::int64_t Above(std::int64_t high, double since_from) const {
    if (drift == 0) return high;
    const double drifted = static_cast<double>(sign) * drift * since_from;
    return high - static_cast<std::int64_t>(std::floor(drifted));
  }
};

// The most at any time of `window`, which lies between both: each allows what it does, and the drift since; where both allow
// the same is the most, above a line, too, whose drift is no more than theirs. Of a clock that was set nobody knows when:
// whatever either of them allows.
std::int64_t MasterClock::HighBetween(const Point& before, const Point& after, Interval window,
                                      const Side& side) const {
  const std::int64_t high = High(before.ahead, side.sign);
  const double all = ApartNs(before.at_ns, after.at_ns);
  if (was_set_) return std::max(high, High(after.ahead, side.sign)) + DriftNs(all);
  const auto rise = static_cast<double>(High(after.ahead, side.sign) - high);
  const double meet = all / 2 + rise / (2 * kClockDriftMax);
  const double begin = ApartNs(before.at_ns, window.begin);
  const double at = std::clamp(meet, begin, std::max(begin, ApartNs(before.at_ns, window.end)));
  const double above = std::min(at * kClockDriftMax, rise + (all - at) * kClockDriftMax);
  return side.Above(high + static_cast<std::int64_t>(std::ceil(above)) + 1,
                    ApartNs(side.from_ns, before.at_ns) + at);
}

void MasterClock::Take(const Reading& reading, std::string_view trial) {
  const bool is_absurd = reading.error_ns < 0 || reading.error_ns > kAheadMaxNs ||
                         reading.ahead_ns > kAheadMaxNs || reading.ahead_ns < -kAheadMaxNs;
  const bool is_late = is_known() && reading.at_ns < points_.back().at_ns;
  const bool is_others = is_known() && trial != trial_;
  if (is_absurd || is_late || is_others) return;
  const Point point = {reading.at_ns,
                       {reading.ahead_ns - reading.error_ns, reading.ahead_ns + reading.error_ns}};
  trial_ = trial;
  is_settled_ = false;
  // The newest is always there; of the others those at every stride.
  if (is_known() && (taken_ - 1) % stride_ != 0) points_.pop_back();
  if (points_.size() == kReadingsMax) {
    for (std::size_t i = 1; i < kReadingsMax / 2; ++i) points_[i] = points_[2 * i];
    points_.resize(kReadingsMax / 2);
    stride_ *= 2;
  }
  points_.push_back(point);
  ++taken_;
}

MasterClock MasterClock::Of(const std::vector<const MasterClock*>& clocks, std::string_view trial) {
  MasterClock all;
  all.trial_ = trial;
  for (const MasterClock* each : clocks) {
    if (each->trial_ != trial) continue;
    all.points_.insert(all.points_.end(), each->points_.begin(), each->points_.end());
  }
  std::stable_sort(all.points_.begin(), all.points_.end(), IsEarlier);
  all.Settle();
  return all;
}

void MasterClock::Settle() {
  is_settled_ = true;
  std::vector<Point> narrow = points_;
  bool fits = true;
  for (std::size_t i = 1; fits && i < narrow.size(); ++i) fits = Narrow(narrow[i], narrow[i - 1]);
  for (std::size_t i = narrow.size(); fits && i-- > 1;) fits = Narrow(narrow[i - 1], narrow[i]);
  was_set_ = !fits;
  if (fits) points_ = std::move(narrow);
  while (points_.size() > kTogetherMax) Halve();
}

// What one that goes allows its neighbours allow, but for the drift. Of a clock that was set both of two count on.
void MasterClock::Halve() {
  const Point last = points_.back();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points_.size(); i += 2) {
    Point& point = points_[kept++] = points_[i];
    if (!was_set_ || i + 1 == points_.size()) continue;
    point.ahead.low_ns = std::min(point.ahead.low_ns, points_[i + 1].ahead.low_ns);
    point.ahead.high_ns = std::max(point.ahead.high_ns, points_[i + 1].ahead.high_ns);
  }
  points_.resize(kept);
  points_.push_back(last);
}

MasterClock::Bounds MasterClock::Within(Interval window) const {
  if (!is_settled_) return Of({this}, trial_).Within(window);
  window.end = std::max(window.begin, window.end);
  return {.low_ns = -HighWithin(window, {.sign = -1}), .high_ns = HighWithin(window, {})};
}

// From the middle of what is possible at its begin to that at its end: whatever lies between them counts as error.
MasterClock::Line MasterClock::Along(Interval window) const {
  if (!is_settled_) return Of({this}, trial_).Along(window);
  window.end = std::max(window.begin, window.end);
  const Bounds all = Within(window);
  const Line level = {.ahead_ns = all.ahead_ns(), .drift = 0, .error_ns = all.error_ns()};
  const double length = ApartNs(window.begin, window.end);
  if (was_set_ || length < kShownInNs) return level;
  const double rise = ApartNs(Within({window.begin, window.begin}).ahead_ns(),
                              Within({window.end, window.end}).ahead_ns());
  const double drift = std::clamp(rise / length, -kClockDriftMax, kClockDriftMax);
  const Side high = {.sign = 1, .from_ns = window.begin, .drift = drift};
  const Side low = {.sign = -1, .from_ns = window.begin, .drift = drift};
  const Bounds bounds = {.low_ns = -HighWithin(window, low), .high_ns = HighWithin(window, high)};
  // A drift that the exchanges do not show clearly would be their noise.
  if (bounds.error_ns() > level.error_ns - level.error_ns / 10) return level;
  return {.ahead_ns = bounds.ahead_ns(), .drift = drift, .error_ns = bounds.error_ns()};
}

std::int64_t MasterClock::HighWithin(Interval window, const Side& side) const {
  std::int64_t most = std::numeric_limits<std::int64_t>::min();
  const Point& first = points_.front();
  const Point& last = points_.back();
  const auto take = [&](std::int64_t high, std::int64_t at_ns) {
    most = std::max(most, side.Above(high, ApartNs(side.from_ns, at_ns)));
  };
  if (window.begin <= first.at_ns) {
    const double apart = ApartNs(window.begin, first.at_ns);
    take(High(first.ahead, side.sign) + (apart > 0 ? DriftNs(apart) : 0), window.begin);
  }
  if (window.end >= last.at_ns) {
    const double apart = ApartNs(last.at_ns, window.end);
    take(High(last.ahead, side.sign) + (apart > 0 ? DriftNs(apart) : 0), window.end);
  }
  // From the point before the window on.
  auto after =
      std::upper_bound(points_.begin(), points_.end(), Point{.at_ns = window.begin}, IsEarlier);
  if (after == points_.begin()) ++after;
  for (; after != points_.end() && std::prev(after)->at_ns <= window.end; ++after) {
    const Point& before = *std::prev(after);
    const Interval part = {std::max(window.begin, before.at_ns),
                           std::min(window.end, after->at_ns)};
    most = std::max(most, HighBetween(before, *after, part, side));
  }
  return most;
}

}  // namespace stepwell
