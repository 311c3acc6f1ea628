// A wall clock that is set. The real one is everybody's: here this program's view of it is ahead of the
// kernel's.
#include "base/steady_time.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

namespace {
std::atomic<long> ahead_seconds{0};
}  // namespace

// Takes the place of libc's for all of this program.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long rc = syscall(SYS_clock_gettime, clock, time);
  if (rc == 0 && clock == CLOCK_REALTIME) time->tv_sec += ahead_seconds;
  return static_cast<int>(rc);
}

namespace stepwell {
namespace {

TEST(SteadyTimeTest, TellsWhatIsLeft) {
  FakeClock clock;
  const SteadyTime begin = SteadyTime::Now(clock);
  const SteadyTime deadline = begin + absl::Seconds(5);
  EXPECT_EQ(deadline.Left(clock), absl::Seconds(5));
  EXPECT_FALSE(deadline.HasPassed(clock));
  clock.Advance(absl::Seconds(4));
  EXPECT_EQ(deadline.Left(clock), absl::Seconds(1));
  EXPECT_EQ(SteadyTime::Now(clock) - begin, absl::Seconds(4));
  EXPECT_FALSE(deadline.HasPassed(clock));
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(deadline.Left(clock), absl::ZeroDuration());
  EXPECT_TRUE(deadline.HasPassed(clock));
  clock.Advance(absl::Hours(1));
  EXPECT_EQ(deadline.Left(clock), absl::ZeroDuration()) << "never below";
}

TEST(SteadyTimeTest, HasEnds) {
  FakeClock clock;
  const SteadyTime now = SteadyTime::Now(clock);
  EXPECT_EQ(SteadyTime::InfiniteFuture().Left(clock), absl::InfiniteDuration());
  EXPECT_FALSE(SteadyTime::InfiniteFuture().HasPassed(clock));
  EXPECT_EQ(SteadyTime::InfinitePast().Left(clock), absl::ZeroDuration());
  EXPECT_TRUE(SteadyTime().HasPassed(clock)) << "what was never set is due";
  EXPECT_EQ(SteadyTime(), SteadyTime::InfinitePast());
  EXPECT_GT(now - SteadyTime::InfinitePast(), absl::Hours(1'000'000));
  EXPECT_LT(now - SteadyTime::InfiniteFuture(), absl::ZeroDuration());
  EXPECT_LT(SteadyTime::InfinitePast(), now);
  EXPECT_LT(now, now + absl::Nanoseconds(1));
  EXPECT_LT(now, SteadyTime::InfiniteFuture());
  EXPECT_EQ(SteadyTime::InfiniteFuture() - absl::Seconds(1), SteadyTime::InfiniteFuture());
}

class SteadyTimeSetClockTest : public ::testing::TestWithParam<long> {
 protected:
  ~SteadyTimeSetClockTest() override { ahead_seconds = 0; }
};

TEST_P(SteadyTimeSetClockTest, ADeadlineStaysWhereTheWallClockIsSet) {
  const SteadyTime begin = SteadyTime::Now();
  const SteadyTime deadline = begin + absl::Minutes(10);
  timespec wall{};
  ASSERT_EQ(clock_gettime(CLOCK_REALTIME, &wall), 0);
  ahead_seconds = GetParam();
  timespec set{};
  ASSERT_EQ(clock_gettime(CLOCK_REALTIME, &set), 0);
  ASSERT_GT(std::abs(set.tv_sec - wall.tv_sec), 3000) << "it is set";
  EXPECT_FALSE(deadline.HasPassed());
  EXPECT_GT(deadline.Left(), absl::Minutes(9));
  EXPECT_LE(deadline.Left(), absl::Minutes(10));
  EXPECT_GE(SteadyTime::Now(), begin);
  EXPECT_LT(SteadyTime::Now() - begin, absl::Minutes(1));
}

INSTANTIATE_TEST_SUITE_P(Clocks, SteadyTimeSetClockTest, ::testing::Values(3600L, -3600L));

}  // namespace
}  // namespace stepwell
