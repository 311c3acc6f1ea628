// MasterClock: how far a trace's clock is from its master's, by what the agent wrote into the trace of its timed exchanges:
// metadata events `master_clock` with `at_ns` (by the trace's own times), `ahead_ns` and `error_ns` (the master's clock was
// ahead by ahead ± error then), and `trial`. Between two of them, and before the first, clocks drift by at most kDriftMax.
// A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

  // In order of time; what is absurd is left out.
  void Take(const Reading& reading, std::string_view trial);

  bool is_known() const { return last_.has_value(); }
  // Added to the trace's times they are the master's, give or take the error.
  std::int64_t ahead_ns() const { return last_->ahead_ns; }
  // At each time from `first_ns` to the last reading. REQUIRES: is_known.
  std::int64_t ErrorFrom(std::int64_t first_ns) const;
  // Whose master it is.
  const std::string& trial() const { return trial_; }

 private:
  Reading first_;
  std::optional<Reading> last_;
  // Of the readings before the last one: how far off what they allowed may be, both ways.
  std::int64_t low_ns_ = 0;
  std::int64_t high_ns_ = 0;
  std::string trial_;
};

}  // namespace stepwell
