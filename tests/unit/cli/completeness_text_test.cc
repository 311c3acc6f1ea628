#include "client/cli/completeness_text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepwell::cli {
namespace {

TEST(CompletenessTextTest, NamesTheRanksThatNeverOpened) {
  const std::string why =
      " never opened: recorded into memory only, reached no master, or have not begun.";
  struct Row {
    std::string name;
    std::vector<std::int32_t> ranks;
    std::int32_t count;
    std::string expected;
  };
  std::vector<std::int32_t> odd;
  for (std::int32_t rank = 1; rank < 2000; rank += 2) odd.push_back(rank);
  std::vector<std::int32_t> all;
  for (std::int32_t rank = 1; rank <= 1000; ++rank) all.push_back(rank);
  const std::vector<Row> rows = {
      {"one", {1}, 1, " Rank 1" + why},
      {"one and a range", {3, 5, 6, 7}, 4, " Ranks 3, 5-7" + why},
      {"two neighbours", {0, 1}, 2, " Ranks 0-1" + why},
      {"more than are listed", all, 2'147'483'646, " Ranks 1-1000 and 2,147,482,646 more" + why},
      {"more than a sentence holds", odd, 1000,
       " Ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 990 more" + why},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    v1::Completeness completeness;
    completeness.set_samples_held(1234);
    completeness.mutable_ranks_missing()->Assign(row.ranks.begin(), row.ranks.end());
    completeness.set_ranks_missing_count(row.count);
    EXPECT_EQ(CompletenessText(completeness), "Incomplete: 1,234 samples are here." + row.expected);
  }
}

TEST(CompletenessTextTest, RanksComeBesideWhatElseIsMissing) {
  v1::Completeness completeness;
  completeness.set_samples_held(10);
  completeness.set_samples_missing(5);
  v1::Gap& gap = *completeness.add_gaps();
  gap.set_cause(v1::GAP_CAUSE_RING_FULL);
  gap.set_sample_count(5);
  completeness.add_ranks_missing(1);
  completeness.set_ranks_missing_count(1);
  const std::string text = CompletenessText(completeness);
  EXPECT_EQ(text.rfind("Incomplete: 10 samples are here, 5 are missing", 0), 0U) << text;
  EXPECT_NE(text.find(" Rank 1 never opened: "), std::string::npos) << text;
}

}  // namespace
}  // namespace stepwell::cli
