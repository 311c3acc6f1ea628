#include "client/agent/sync_pace.h"

#include <gtest/gtest.h>

#include <vector>

namespace stepwell::agent {
namespace {

constexpr absl::Duration kFrame = absl::Milliseconds(100);

absl::Duration At(int ms) { return absl::Seconds(1000) + absl::Milliseconds(ms); }

TEST(SyncPaceTest, WhatIsNotAckedIsSyncedWithin500Ms) {
  SyncPace pace(kFrame, 7);
  EXPECT_FALSE(pace.IsDue(0, At(0))) << "the disk has it all";
  pace.OnWritten(7, 0, At(0));
  EXPECT_FALSE(pace.IsDue(0, At(100'000)));
  for (int ms = 0; ms <= 400; ms += 100) {
    pace.OnWritten(8, 0, At(ms));
    EXPECT_FALSE(pace.IsDue(0, At(ms))) << ms;
  }
  // The next visit would be too late.
  EXPECT_TRUE(pace.IsDue(0, At(425)));
  pace.OnSynced();
  EXPECT_FALSE(pace.IsDue(0, At(1000)));
}

TEST(SyncPaceTest, TheOldestThatIsNotAckedCounts) {
  SyncPace pace(kFrame, 0);
  for (int visit = 0; visit < 100; ++visit) {
    const auto written = static_cast<std::uint64_t>(visit) + 1;
    // Each frame is acked by the next visit.
    pace.OnWritten(written, written - 1, At(visit * 40));
    EXPECT_FALSE(pace.IsDue(written - 1, At(visit * 40))) << visit;
  }
  // From here on no ack comes.
  EXPECT_FALSE(pace.IsDue(99, At(99 * 40 + 420)));
  EXPECT_TRUE(pace.IsDue(99, At(99 * 40 + 425)));
  // It came after all.
  EXPECT_FALSE(pace.IsDue(100, At(99 * 40 + 425)));
}

TEST(SyncPaceTest, WhatIsAckedIsSyncedWithin5S) {
  SyncPace pace(kFrame, 0);
  pace.OnWritten(1, 0, At(0));
  EXPECT_FALSE(pace.IsDue(1, At(4920)));
  EXPECT_TRUE(pace.IsDue(1, At(4925)));
  // Later frames do not put it off.
  pace.OnWritten(2, 1, At(4000));
  EXPECT_TRUE(pace.IsDue(2, At(4925)));
  pace.OnSynced();
  pace.OnWritten(3, 2, At(5000));
  EXPECT_FALSE(pace.IsDue(3, At(5400)));
  // A master that comes back older than its acks wants them again: they are not on the disk yet.
  EXPECT_TRUE(pace.IsDue(2, At(5425)));
}

// As a rank does that records: there is always one that is not acked yet.
TEST(SyncPaceTest, WhereFramesFollowEachOtherAndAreAckedItIsSyncedEach5S) {
  SyncPace pace(kFrame, 0);
  std::vector<int> synced_ms;
  for (int ms = 0; ms < 60'000; ms += 100) {
    const auto written = static_cast<std::uint64_t>(ms / 100) + 1;
    pace.OnWritten(written, written - 1, At(ms));
    if (!pace.IsDue(written - 1, At(ms))) continue;
    pace.OnSynced();
    synced_ms.push_back(ms);
  }
  ASSERT_EQ(synced_ms.size(), 11u);
  EXPECT_LE(synced_ms.front(), 5000);
  for (std::size_t i = 1; i < synced_ms.size(); ++i) {
    EXPECT_LE(synced_ms[i] - synced_ms[i - 1], 5100);
  }
}

TEST(SyncPaceTest, OneThatFailedIsDueAgainAfter500MsAndNothingGrows) {
  SyncPace pace(kFrame, 0);
  pace.OnFailed(At(0));
  EXPECT_FALSE(pace.IsDue(0, At(100'000))) << "nothing was to be synced";
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
    pace.OnWritten(sequence, 0, At(100 * static_cast<int>(sequence)));
  }
  ASSERT_TRUE(pace.IsDue(0, At(600)));
  for (int failure = 0; failure < 3; ++failure) {
    const int ms = 600 + 500 * failure;
    pace.OnFailed(At(ms));
    EXPECT_FALSE(pace.IsDue(0, At(ms + 420)));
    EXPECT_TRUE(pace.IsDue(0, At(ms + 425)));
  }
  // What was acked meanwhile has more time.
  EXPECT_FALSE(pace.IsDue(5, At(2500)));
  pace.OnSynced();
  EXPECT_FALSE(pace.IsDue(0, At(100'000)));
}

}  // namespace
}  // namespace stepwell::agent
