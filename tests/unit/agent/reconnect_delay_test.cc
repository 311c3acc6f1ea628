#include "client/agent/reconnect_delay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace stepwell::agent {
namespace {

// The longest single wait within an absence, each try failing at once.
absl::Duration LongestWait(ReconnectDelay& delay, absl::Duration from, absl::Duration until) {
  absl::Duration longest = absl::ZeroDuration();
  for (absl::Duration now = from; now < until;) {
    const absl::Duration wait = delay.Next(now);
    EXPECT_GT(wait, absl::ZeroDuration());
    longest = std::max(longest, wait);
    now += wait;
  }
  return longest;
}

TEST(ReconnectDelayTest, IsShortForMinutesAndThenGrows) {
  const struct {
    const char* name;
    absl::Duration from, until;
    absl::Duration least, most;
  } rows[] = {
      {"first second", absl::ZeroDuration(), absl::Seconds(1), absl::ZeroDuration(),
       absl::Seconds(1)},
      {"a restart", absl::ZeroDuration(), absl::Seconds(19), absl::ZeroDuration(),
       absl::Seconds(1)},
      {"minutes", absl::Seconds(21), absl::Minutes(5), absl::Seconds(1), absl::Seconds(5)},
      {"a night", absl::Minutes(6), absl::Hours(8), absl::Seconds(20), absl::Seconds(30)},
  };
  ReconnectDelay delay(ReconnectDelay::Options(), absl::ZeroDuration());
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    const absl::Duration longest = LongestWait(delay, row.from, row.until);
    EXPECT_GE(longest, row.least);
    EXPECT_LE(longest, row.most);
  }
}

TEST(ReconnectDelayTest, AnAnswerMakesItShortAgain) {
  ReconnectDelay delay(ReconnectDelay::Options(), absl::ZeroDuration());
  LongestWait(delay, absl::ZeroDuration(), absl::Hours(1));
  delay.OnAnswered(absl::Hours(2));
  EXPECT_LE(delay.Next(absl::Hours(2)), absl::Milliseconds(200));
  EXPECT_LE(LongestWait(delay, absl::Hours(2), absl::Hours(2) + absl::Minutes(4)),
            absl::Seconds(5));
}

TEST(ReconnectDelayTest, AgentsThatLostOneMasterDoNotComeBackTogether) {
  std::set<absl::Duration> tenth_waits;
  for (int i = 0; i < 200; ++i) {
    ReconnectDelay delay(ReconnectDelay::Options(), absl::ZeroDuration());
    for (int k = 0; k < 9; ++k) (void)delay.Next(absl::ZeroDuration());
    tenth_waits.insert(delay.Next(absl::ZeroDuration()));
  }
  EXPECT_GT(tenth_waits.size(), 150u);
  // All over the second that they have.
  EXPECT_LT(*tenth_waits.begin(), absl::Milliseconds(250));
  EXPECT_GT(*tenth_waits.rbegin(), absl::Milliseconds(850));
}

}  // namespace
}  // namespace stepwell::agent
