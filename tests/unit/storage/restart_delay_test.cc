#include <gtest/gtest.h>

#include "storage/private_postgres_supervisor.h"

namespace stepwell {
namespace {

TEST(RestartDelayTest, GrowsFromNothingToHalfAMinute) {
  const int seconds[] = {0, 0, 1, 2, 4, 8, 16, 30, 30};
  for (int crash_count = 0; crash_count < 9; ++crash_count) {
    EXPECT_EQ(RestartDelay(crash_count), absl::Seconds(seconds[crash_count])) << crash_count;
  }
  EXPECT_EQ(RestartDelay(1'000'000), absl::Seconds(30));
}

}  // namespace
}  // namespace stepwell
