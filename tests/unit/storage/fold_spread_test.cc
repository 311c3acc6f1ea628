#include "storage/fold_spread.h"

#include <gtest/gtest.h>

#include "storage/stretch.h"

namespace stepwell {
namespace {

constexpr std::int64_t kFarUs = kSlowStretchSpanUs + 1;
constexpr std::int64_t kDayUs = 86'400'000'000;

TickTable Table(int tick_count, std::int64_t step_us, int columns, std::int64_t start_us = 0) {
  TickTable table;
  table.tick_group = 1;
  for (int i = 0; i < tick_count; ++i) table.times_us.push_back(start_us + i * step_us);
  table.batches.assign(table.times_us.size(), -1);
  for (int i = 1; i <= columns; ++i) {
    table.columns.push_back({.series_no = SeriesNo{i},
                             .values = std::vector<double>(table.times_us.size(), 1),
                             .presence = {}});
  }
  return table;
}

// Parts of chunks 1, 2, ...
WriterFold Fold(int writer_no, const std::vector<std::vector<TickTable>>& chunks) {
  WriterFold fold;
  fold.trial_id = TrialId{7};
  fold.writer_no = WriterNo{writer_no};
  for (const std::vector<TickTable>& tables : chunks) {
    fold.parts.push_back({1, &tables, ++fold.to_sequence});
  }
  return fold;
}

TEST(FoldSpreadTest, CountsRowsThatNearTicksWouldNotMake) {
  struct Row {
    const char* name;
    std::vector<std::vector<TickTable>> chunks;
    std::int64_t rows;
  };
  std::vector<std::vector<TickTable>> seconds, days;
  for (int i = 0; i < 100; ++i) {
    seconds.push_back({Table(1, 0, 5, i * 1'000'000)});
    days.push_back({Table(1, 0, 1, i * kFarUs)});
  }
  for (const Row& row : std::vector<Row>{
           {"nothing", {}, 0},
           {"near", seconds, 0},
           {"many", {{Table(60'000, 1'000'000, 3)}}, 0},
           {"days apart", days, 198},
           {"in one", {{Table(100, kFarUs, 3)}}, 396},
           {"of which most are misses", {{Table(1, 0, 3), Table(99, kFarUs, 0, kFarUs)}}, 102}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(SpreadRows(Fold(1, row.chunks)), row.rows);
  }
  WriterFold of_two_days = Fold(1, days);
  for (std::size_t i = 50; i < 100; ++i) of_two_days.parts[i].received_time_us = kDayUs;
  EXPECT_EQ(SpreadRows(of_two_days), 196) << "they are joined by the day";
}

TEST(FoldSpreadTest, CutsIntoWhatContinues) {
  const std::vector<std::vector<TickTable>> near = {{Table(100, 1, 1)}};
  std::vector<std::vector<TickTable>> far;
  for (int i = 0; i < 16; ++i) far.push_back({Table(10, kFarUs, 1, i * 10 * kFarUs)});
  EXPECT_EQ(CutBySpread({}, 100).size(), 1u);
  EXPECT_EQ(CutBySpread({Fold(1, near), Fold(2, near)}, 0).size(), 1u);
  EXPECT_EQ(CutBySpread({Fold(1, near), Fold(2, far)}, 318).size(), 1u);

  const auto cut = CutBySpread({Fold(1, near), Fold(2, far)}, 100);
  std::uint64_t at = 0;
  std::size_t near_count = 0;
  for (const std::vector<WriterFold>& folds : cut) {
    std::int64_t rows = 0;
    for (const WriterFold& fold : folds) {
      rows += SpreadRows(fold);
      near_count += fold.writer_no == WriterNo{1} ? 1 : 0;
      if (fold.writer_no == WriterNo{1}) continue;
      EXPECT_EQ(fold.from_sequence_exclusive, at);
      at = fold.to_sequence;
    }
    EXPECT_LE(rows, 100);
  }
  EXPECT_EQ(at, 16u);
  EXPECT_EQ(near_count, 1u);
  EXPECT_EQ(cut.size(), 5u) << "the near one, and four of four chunks";
  EXPECT_EQ(CutBySpread({Fold(2, far)}, 0).size(), 16u) << "a chunk is not parted";
}

}  // namespace
}  // namespace stepwell
