#include "storage/range_memory.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

using Kind = RangeSource::Kind;

constexpr ReadMoment kNow = {BookChanges::Moment{7}, 1};

RangeKey Key(std::int32_t series_no, RangeSource source = {}) {
  return {TrialId{1}, SeriesNo{series_no}, source};
}

std::shared_ptr<const TickVectors> Ticks() {
  return std::make_shared<const TickVectors>(
      TickVectors{.times_us = std::vector<std::int64_t>(1000), .batches = {}});
}

// One row of about 4 kB of its own on `ticks`.
RangeMemory::Shared Range(std::int64_t start_us, std::shared_ptr<const TickVectors> ticks) {
  RememberedRange range = {.start_us = start_us, .end_us = start_us + 10};
  StoredRow row;
  row.ticks = std::move(ticks);
  row.values.raw.assign(500, 0.5);
  range.rows.push_back(std::move(row));
  return std::make_shared<const RememberedRange>(std::move(range));
}

TEST(RangeMemoryTest, KnowsWhatWasNotedAtTheSameMoment) {
  RangeMemory memory(1 << 20);
  memory.Note(Key(1), kNow, Range(5, Ticks()));
  ASSERT_NE(memory.Find(Key(1), kNow), nullptr);
  EXPECT_EQ(memory.Find(Key(1), kNow)->start_us, 5);
  EXPECT_EQ(memory.Find(Key(1), {BookChanges::Moment{8}, 1}), nullptr);
  EXPECT_EQ(memory.Find(Key(1), {BookChanges::Moment{7}, 2}), nullptr);
  EXPECT_EQ(memory.Find(Key(2), kNow), nullptr);
  EXPECT_EQ(memory.Find(Key(1, {Kind::kRecentRows}), kNow), nullptr);
  EXPECT_EQ(memory.Find(Key(1, {Kind::kRollups, 10}), kNow), nullptr);
  memory.Note(Key(1), {BookChanges::Moment{8}, 1}, Range(6, Ticks()));
  EXPECT_EQ(memory.Find(Key(1), kNow), nullptr);
}

TEST(RangeMemoryTest, KeepsWhatWasUsedLastWithinItsBytesAndCountsSharedTicksOnce) {
  const auto ticks = Ticks();
  RangeMemory memory(30'000);
  memory.Note(Key(1), kNow, Range(1, ticks));
  const std::size_t one = memory.bytes();
  EXPECT_GT(one, 12'000u);
  memory.Note(Key(2), kNow, Range(2, ticks));
  EXPECT_LT(memory.bytes() - one, 6'000u);
  for (std::int32_t series_no = 3; series_no < 100; ++series_no) {
    EXPECT_NE(memory.Find(Key(1), kNow), nullptr);
    memory.Note(Key(series_no), kNow, Range(series_no, ticks));
    EXPECT_LE(memory.bytes(), 30'000u);
    EXPECT_NE(memory.Find(Key(series_no), kNow), nullptr);
  }
  EXPECT_EQ(memory.Find(Key(2), kNow), nullptr);
  // Those of others are not theirs.
  memory.Note(Key(100), kNow, Range(1, Ticks()));
  EXPECT_LE(memory.bytes(), 30'000u);
}

TEST(RangeMemoryTest, TakesWhatIsNewForWhatIsOldNothingTooLargeAndForgetsAll) {
  const auto ticks = Ticks();
  RangeMemory memory(30'000);
  memory.Note(Key(1), kNow, Range(1, ticks));
  const std::size_t one = memory.bytes();
  memory.Note(Key(1), kNow, Range(2, ticks));
  EXPECT_EQ(memory.bytes(), one);
  EXPECT_EQ(memory.Find(Key(1), kNow)->start_us, 2);
  RememberedRange large = {.start_us = 0, .end_us = 10};
  large.rows.resize(1);
  large.rows[0].values.raw.assign(10'000, 0);
  memory.Note(Key(2), kNow, std::make_shared<const RememberedRange>(large));
  EXPECT_EQ(memory.Find(Key(2), kNow), nullptr);
  EXPECT_NE(memory.Find(Key(1), kNow), nullptr);
  EXPECT_EQ(memory.bytes(), one);
  memory.Clear();
  EXPECT_EQ(memory.bytes(), 0u);
  EXPECT_EQ(memory.Find(Key(1), kNow), nullptr);
  memory.Note(Key(1), kNow, Range(1, ticks));
  EXPECT_EQ(memory.bytes(), one);
}

}  // namespace
}  // namespace stepwell
