#include "storage/journal_ring.h"

#include <gtest/gtest.h>

#include <array>

namespace stepwell {
namespace {

constexpr JournalRing::Limits kLimits = {.bytes_max = 100, .row_count_max = 10, .age_max_us = 1000};

void Write(JournalRing& ring, std::int64_t rows, std::int64_t bytes, std::int64_t time_us) {
  const JournalRing::Entry entry = ring.Enter();
  ring.NoteWritten(
      entry.segment(),
      {.row_count = rows, .bytes = bytes, .first_time_us = time_us, .last_time_us = time_us});
}

TEST(JournalRingTest, AdvancesByBytesRowsAndAge) {
  struct Row {
    const char* name;
    std::int64_t rows, bytes, now_us;
    int current;
  };
  for (const Row& row : {Row{"young and small", 1, 99, 5, 0}, Row{"bytes", 1, 100, 5, 1},
                         Row{"rows", 10, 1, 5, 1}, Row{"age", 1, 1, 1005, 1}}) {
    SCOPED_TRACE(row.name);
    JournalRing ring(kLimits);
    Write(ring, row.rows, row.bytes, 5);
    EXPECT_TRUE(ring.AdvanceIfFull(row.now_us));
    EXPECT_EQ(ring.current(), row.current);
  }
}

TEST(JournalRingTest, StaysInAnEmptySegmentForEver) {
  JournalRing ring(kLimits);
  EXPECT_TRUE(ring.AdvanceIfFull(1'000'000));
  EXPECT_EQ(ring.current(), 0);
}

TEST(JournalRingTest, SkipsSegmentsThatHoldRowsAndSaysWhenAllDo) {
  JournalRing ring(kLimits);
  for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
    Write(ring, 1, 1000, i);
    EXPECT_EQ(ring.AdvanceIfFull(0), i < JournalRing::kSegmentCount - 1);
  }
  EXPECT_EQ(ring.current(), 7);
  ring.NoteTruncated(4);
  EXPECT_TRUE(ring.AdvanceIfFull(0));
  EXPECT_EQ(ring.current(), 4);
}

TEST(JournalRingTest, ADamagedSegmentStandsAside) {
  JournalRing ring(kLimits);
  Write(ring, 1, 1000, 100);
  ring.NoteDamaged(0);
  EXPECT_EQ(ring.current(), 1) << "the current one is left at once";
  EXPECT_TRUE(ring.Recyclable(INT64_MAX).empty());
  ring.NoteDamaged(3);
  for (int i = 1; i < JournalRing::kSegmentCount; ++i) {
    if (i == 3) continue;
    EXPECT_EQ(ring.current(), i);
    Write(ring, 1, 1000, 100 + i);
    EXPECT_EQ(ring.AdvanceIfFull(0), i < JournalRing::kSegmentCount - 1);
  }
  EXPECT_EQ(ring.Damaged(), (std::vector<int>{0, 3}));
  ring.NoteFound(3, {.is_damaged = true}, 0);
  EXPECT_FALSE(ring.AdvanceIfFull(0));
  ring.NoteFound(3, {}, 0);
  EXPECT_TRUE(ring.AdvanceIfFull(0));
  EXPECT_EQ(ring.current(), 3);
}

TEST(JournalRingTest, StaysInADamagedSegmentOnlyUntilAnotherIsEmpty) {
  JournalRing ring(kLimits);
  for (int i = 0; i < JournalRing::kSegmentCount; ++i) {
    Write(ring, 1, 1000, i);
    ring.AdvanceIfFull(0);
  }
  ring.NoteDamaged(7);
  EXPECT_EQ(ring.current(), 7);
  EXPECT_FALSE(ring.AdvanceIfFull(0));
  ring.NoteTruncated(2);
  EXPECT_TRUE(ring.AdvanceIfFull(0));
  EXPECT_EQ(ring.current(), 2);
}

TEST(JournalRingTest, StartsInTheNewestThatIsNotDamaged) {
  std::array<JournalSegment, JournalRing::kSegmentCount> found{};
  found[2] = {.row_count = 1, .bytes = 1, .first_time_us = 5, .last_time_us = 6};
  found[4] = {.is_damaged = true};
  found[5] = {
      .row_count = 1, .bytes = 1, .first_time_us = 8, .last_time_us = 9, .is_damaged = true};
  JournalRing ring(kLimits);
  ring.Start(found, 1000);
  EXPECT_EQ(ring.current(), 2);
  for (JournalSegment& each : found) each.is_damaged = true;
  ring.Start(found, 1000);
  EXPECT_FALSE(ring.AdvanceIfFull(0));
}

TEST(JournalRingTest, RecyclesOnlyWhatIsOldUnusedAndNotCurrent) {
  JournalRing ring(kLimits);
  Write(ring, 1, 1000, 100);
  ASSERT_TRUE(ring.AdvanceIfFull(0));
  Write(ring, 1, 1000, 200);
  ASSERT_TRUE(ring.AdvanceIfFull(0));
  Write(ring, 1, 10, 300);
  EXPECT_TRUE(ring.Recyclable(100).empty());
  EXPECT_EQ(ring.Recyclable(101), std::vector<int>{0});
  EXPECT_EQ(ring.Recyclable(1000), (std::vector<int>{0, 1}));
  const JournalRing::Entry current = ring.Enter();
  EXPECT_EQ(current.segment(), 2);
}

TEST(JournalRingTest, LeavesASegmentAloneWhileACommitIsInIt) {
  JournalRing ring(kLimits);
  {
    const JournalRing::Entry entry = ring.Enter();
    ring.NoteWritten(entry.segment(),
                     {.row_count = 1, .bytes = 1000, .first_time_us = 1, .last_time_us = 1});
    ASSERT_TRUE(ring.AdvanceIfFull(0));
    EXPECT_TRUE(ring.Recyclable(1000).empty());
  }
  EXPECT_EQ(ring.Recyclable(1000), std::vector<int>{0});
}

TEST(JournalRingTest, StartsInTheNewestAndKeepsTimesAscending) {
  JournalRing ring(kLimits);
  std::array<JournalSegment, JournalRing::kSegmentCount> found{};
  found[2] = {.row_count = 5, .bytes = 10, .first_time_us = 100, .last_time_us = 200};
  found[6] = {.row_count = 5, .bytes = 10, .first_time_us = 201, .last_time_us = 300};
  ring.Start(found, 1000);
  EXPECT_EQ(ring.current(), 6);
  EXPECT_EQ(ring.AscendingTime(250), 301);  // the clock stepped back
  EXPECT_EQ(ring.AscendingTime(301), 302);
  EXPECT_EQ(ring.AscendingTime(1000), 1000);
}

// Set back by hours between two starts: rows go on from where it stood, and told so that nothing of before might go, nor the
// current one be left by its age, for as long.
TEST(JournalRingTest, WhatAClockOfBeforeWroteIsNoYoungerThanTheStart) {
  JournalRing ring(kLimits);
  std::array<JournalSegment, JournalRing::kSegmentCount> found{};
  found[2] = {.row_count = 1, .bytes = 1, .first_time_us = 100'100, .last_time_us = 100'200};
  found[3] = {.row_count = 1, .bytes = 1, .first_time_us = 40, .last_time_us = 50};
  found[6] = {.row_count = 1, .bytes = 1, .first_time_us = 100'201, .last_time_us = 100'300};
  ring.Start(found, 60);
  EXPECT_EQ(ring.current(), 6) << "by what the rows say";
  EXPECT_TRUE(ring.Recyclable(50).empty());
  EXPECT_EQ(ring.Recyclable(60), std::vector<int>{3});
  EXPECT_EQ(ring.Recyclable(61), (std::vector<int>{3, 2}));
  EXPECT_EQ(ring.AscendingTime(70), 100'301);
  Write(ring, 1, 1, 70);
  EXPECT_TRUE(ring.AdvanceIfFull(1059));
  EXPECT_EQ(ring.current(), 6);
  EXPECT_TRUE(ring.AdvanceIfFull(1060));
  EXPECT_EQ(ring.current(), 7);
  EXPECT_EQ(ring.Recyclable(71), (std::vector<int>{3, 2, 6}));
  ring.NoteDamaged(1);
  ring.NoteFound(1, found[2], 80);
  EXPECT_EQ(ring.segment(1).last_time_us, 80);
}

}  // namespace
}  // namespace stepwell
