#include "server/gap_places.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

using ::testing::ElementsAre;

v1::Gap GapOf(std::int32_t writer_no, std::int64_t first_us, std::int64_t last_us) {
  v1::Gap gap;
  gap.set_writer_no(writer_no);
  gap.set_first_time_us(first_us);
  gap.set_last_time_us(last_us);
  return gap;
}

TEST(GapPlacesTest, OnlyGapsOfAWriterWithTimesAreAskedForEachStretchOnce) {
  v1::Completeness completeness;
  *completeness.add_gaps() = GapOf(1, 10, 20);
  *completeness.add_gaps() = GapOf(1, 10, 20);  // of another group
  *completeness.add_gaps() = GapOf(2, 10, 20);
  *completeness.add_gaps() = GapOf(0, 10, 20);  // of the trial
  *completeness.add_gaps() = GapOf(1, 0, 0);
  *completeness.add_gaps() = GapOf(1, 10, 0);  // goes on
  EXPECT_THAT(StretchesOf(completeness, 10),
              ElementsAre(WriterStretch{WriterNo{2}, 10, 20}, WriterStretch{WriterNo{1}, 10, 20}));
  EXPECT_THAT(StretchesOf(completeness, 1), ElementsAre(WriterStretch{WriterNo{2}, 10, 20}));
}

TEST(GapPlacesTest, APlaceIsToldWhereItsBatchesCount) {
  BatchAttempts attempts;
  attempts.Add(1, 0, 99);
  attempts.Add(2, 60, 199);
  constexpr std::int32_t kNone = -1;
  struct Row {
    std::string name;
    std::int32_t attempt;
    std::int32_t before, after;            // as ticks tell them
    std::int32_t told_before, told_after;  // as the gap does
  };
  const std::vector<Row> rows = {
      {"of the newest attempt", 2, 70, 80, 70, 80},
      {"of the older one", 1, 10, 20, 10, 20},
      {"done over by a newer attempt", 1, 70, 80, kNone, kNone},
      {"done over in part", 1, 50, 80, 50, 80},
      {"nothing before", 2, kNone, 80, kNone, 80},
      {"nothing after", 2, 199, kNone, 199, kNone},
      {"nothing after, and done over", 1, 99, kNone, kNone, kNone},
      {"no ticks at all", 2, kNone, kNone, kNone, kNone},
      {"one batch", 2, 70, 70, 70, 70},
      {"against time", 2, 80, 70, kNone, kNone},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    BatchesAround around;
    if (row.before != kNone) around.before = TickBatch{1, row.before};
    if (row.after != kNone) around.after = TickBatch{2, row.after};
    v1::Gap gap = GapOf(1, 1, 2);
    SetPlace(around, attempts, row.attempt, gap);
    EXPECT_EQ(gap.has_batch_before() ? gap.batch_before() : kNone, row.told_before);
    EXPECT_EQ(gap.has_batch_after() ? gap.batch_after() : kNone, row.told_after);
  }
}

}  // namespace
}  // namespace stepwell
