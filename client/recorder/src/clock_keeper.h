// ClockKeeper sets a HotClock: it compares the processor's counter with the kernel's clock, now and then.
// Confined to the maintenance thread.
//
//   ClockKeeper keeper(clock);
//   keeper.Look();  // at each of its rounds
#pragma once

#include <cstdint>
#include <optional>

#include "client/recorder/src/hot_clock.h"

namespace stepwell::recorder {

class ClockKeeper {
 public:
  // The kernel's clock is this processor's counter, which it watches, and which HotClock can read. Reads a
  // file.
  static bool IsCounterTheClock();
  // What the two were at one moment; none where no look was quick enough to tell.
  // REQUIRES: IsCounterTheClock().
  static std::optional<HotClock::Reading> ReadBoth();

  // `clock` outlives the keeper, and goes on for as long as what it was told holds.
  explicit ClockKeeper(HotClock& clock) : clock_(clock) {}

  // Where the counter is not the kernel's clock, or not any more, that is asked from now on.
  void Look();
  // Of one that is: what was read, none = nothing is known, and what was told runs out.
  void LearnFrom(const std::optional<HotClock::Reading>& read);

 private:
  // In 2^-32 ns; 0 = that can be none.
  static std::uint32_t NsPerCount(const HotClock::Reading& from, const HotClock::Reading& to);

  HotClock& clock_;
  std::uint32_t look_count_ = 0;
  bool is_counter_the_clock_ = false;
  std::optional<HotClock::Reading> last_;
  std::uint32_t ns_per_count_ = 0;  // as of the last two looks
};

}  // namespace stepwell::recorder
