// MasterClock: how far a trace's clock is from its master's, by what the agent wrote into the trace of its timed exchanges:
// metadata events `master_clock` with `at_ns` (by the trace's own times), `ahead_ns` and `error_ns` (the master's clock was
// ahead by ahead ± error then), `trial` and `machine`. Between two of them, before the first and behind the last, clocks
// drift by at most kClockDriftMax. Of traces that share a clock the readings of all count. A value.
//
// Invariant: whatever was read truly, and as long as nobody set a clock without a reading that shows it, the master's clock
// was ahead by what lies within Within() at each moment asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/trace/interval_set.h"

namespace stepwell {

inline constexpr char kMasterClockEvent[] = "master_clock";
// Of events that are metadata, also in a form that has no phase for it.
inline constexpr char kMetadataCategory[] = "__metadata";
// What two crystals drift apart in a second at most: 50 millionths each.
inline constexpr double kClockDriftMax = 100e-6;

class MasterClock {
 public:
  struct Reading {
    std::int64_t at_ns = 0;
    std::int64_t ahead_ns = 0;
    std::int64_t error_ns = 0;
  };
  // From the least to the most that the master's clock may have been ahead.
  struct Bounds {
    std::int64_t low_ns = 0;
    std::int64_t high_ns = 0;

    // Added to the trace's times they are the master's, give or take the error.
    std::int64_t ahead_ns() const { return low_ns + (high_ns - low_ns) / 2; }
    std::int64_t error_ns() const { return high_ns - ahead_ns(); }
  };
  // Along which the master's clock was ahead during a window: by ahead_ns at its begin, and by `drift` more with each
  // nanosecond since; at each moment of it give or take error_ns.
  struct Line {
    std::int64_t ahead_ns = 0;
    double drift = 0;  // within ± kClockDriftMax
    std::int64_t error_ns = 0;
  };
  // Of one trace; where there are more every second one goes, and what the clocks drift in between is counted.
  static constexpr std::size_t kReadingsMax = 512;

  // Of all traces of a clock together, likewise.
  static constexpr std::size_t kTogetherMax = 4096;

  // In order of time; what is absurd is left out.
  void Take(const Reading& reading, std::string_view trial);
  // What traces of one clock tell together. Of another trial, whose master may be another, nothing.
  static MasterClock Of(const std::vector<const MasterClock*>& clocks, std::string_view trial);

  bool is_known() const { return !points_.empty(); }
  // At each time of `window`, both ends included. Where readings contradict each other, for a clock was set meanwhile, as much
  // as those before and behind it say. REQUIRES: is_known.
  Bounds Within(Interval window) const;
  // Likewise as a line: without drift, unless with it the error is less by a tenth and more.
  Line Along(Interval window) const;
  // Whose master it is.
  const std::string& trial() const { return trial_; }

 private:
  struct Point {
    std::int64_t at_ns = 0;
    Bounds ahead = {};
  };

  static bool IsEarlier(const Point& a, const Point& b) { return a.at_ns < b.at_ns; }
  static bool Narrow(Point& point, const Point& by);
  void Settle();
  void Halve();
  struct Side;  // master_clock.cc
  std::int64_t HighBetween(const Point& before, const Point& after, Interval window,
                           const Side& side) const;
  std::int64_t HighWithin(Interval window, const Side& side) const;

  std::vector<Point> points_;  // in order of time; once settled each as narrow as the others allow
  std::size_t taken_ = 0;
  std::size_t stride_ = 1;
  bool is_settled_ = false;
  bool was_set_ = false;  // no drift explains all of them
  std::string trial_;
};

}  // namespace stepwell
