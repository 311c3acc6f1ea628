#include "server/fold_pace.h"

#include <gtest/gtest.h>

#include <limits>

namespace stepwell {
namespace {

TEST(FoldPaceTest, ManySeriesAreFoldedSeldom) {
  struct Row {
    std::int64_t row_count;
    int seconds;
  };
  for (const Row& row : {Row{0, 10}, Row{999, 10}, Row{1000, 10}, Row{3000, 30}, Row{6000, 60},
                         Row{std::numeric_limits<std::int64_t>::max(), 60}}) {
    EXPECT_EQ(NextFoldInterval(absl::Seconds(10), row.row_count), absl::Seconds(row.seconds))
        << row.row_count;
  }
  EXPECT_EQ(NextFoldInterval(absl::Milliseconds(100), 2000), absl::Milliseconds(200));
}

}  // namespace
}  // namespace stepwell
