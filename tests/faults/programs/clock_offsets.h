// ClockOffsets: what is added to a machine's clocks for the processes that set_clock.cc is preloaded into.
// One file of this, mapped by all of them, and by the test that sets it.
#pragma once

#include <atomic>
#include <cstdint>

namespace stepwell::faults {

struct ClockOffsets {
  std::atomic<std::int64_t> wall_ns{0};  // CLOCK_REALTIME
  std::atomic<std::int64_t> boot_ns{0};  // CLOCK_BOOTTIME
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

}  // namespace stepwell::faults
