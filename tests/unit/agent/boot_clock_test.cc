#include "client/agent/sensors/boot_clock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>

namespace stepwell::agent {
namespace {

const Clock* asked_at_exit = nullptr;

void AskAndLeave() { _exit(asked_at_exit->Monotonic() > absl::ZeroDuration() ? 42 : 1); }

// A thread that waits for a hanging file lives on while the process ends.
TEST(BootClockDeathTest, IsThereWhileTheProcessEnds) {
  // In a process where nobody asked for the clock before.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        // What is registered first is called last: after the end of statics made since.
        std::atexit(AskAndLeave);
        asked_at_exit = &BootClock::Get();
        std::exit(0);
      },
      ::testing::ExitedWithCode(42), "");
}

}  // namespace
}  // namespace stepwell::agent
