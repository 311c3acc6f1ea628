#include "storage/pg_reader_leaves.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

std::vector<std::string> Texts(const std::vector<SqlText>& all) {
  std::vector<std::string> texts;
  for (const SqlText& each : all) texts.emplace_back(each.text());
  return texts;
}

TEST(PgReaderLeavesTest, JoinsNeighbouringDaysOfAClass) {
  std::vector<UsageRecord> usage;
  const auto add = [&](std::int16_t keep_class, std::int32_t day, std::int64_t rows = 1) {
    usage.push_back({.received_day = day,
                     .keep_class = keep_class,
                     .metric_group = "g",
                     .row_count = rows,
                     .first_time_us = day * 10,
                     .last_time_us = day * 10 + 9});
  };
  for (const std::int32_t day : {1, 2, 3, 7}) add(0, day);
  add(1, 4);
  add(1, 5, 0);  // emptied
  EXPECT_EQ(PickLeaves(usage, INT64_MIN, INT64_MAX),
            (std::vector<LeafRange>{{0, 1, 3}, {0, 7, 7}, {1, 4, 4}}));
  EXPECT_EQ(PickLeaves(usage, 20, 30), (std::vector<LeafRange>{{0, 2, 2}}));
  EXPECT_EQ(ConditionOf({}, 1).sql.text(), "false");
  for (std::int32_t day = 100; day < 300; day += 2) add(0, day);
  EXPECT_EQ(PickLeaves(usage, INT64_MIN, INT64_MAX),
            (std::vector<LeafRange>{{0, 1, 298}, {1, 4, 4}}))
      << "too many ranges become one per class";
}

TEST(PgReaderLeavesTest, FewLeavesAreNamedAndManyAreFoundByACondition) {
  const std::vector<LeafRange> few = {{0, 20'000, 20'002}, {1, 20'004, 20'004}};
  EXPECT_TRUE(AreFew(few));
  EXPECT_TRUE(AreFew({}));
  EXPECT_FALSE(AreFew({{0, 20'000, 20'004}}));
  std::vector<PgParam> params = {std::int64_t{7}};
  EXPECT_EQ(Texts(PlacesOf("ticks", few, LeafPlaces::kNamed, params)),
            (std::vector<std::string>{"stepwell.\"ticks_k0_20241004\" where true",
                                      "stepwell.\"ticks_k0_20241005\" where true",
                                      "stepwell.\"ticks_k0_20241006\" where true",
                                      "stepwell.\"ticks_k1_20241008\" where true"}));
  EXPECT_EQ(params.size(), 1u);
  EXPECT_EQ(Texts(PlacesOf("ticks", {{0, 20'000, 20'004}}, LeafPlaces::kPruned, params)),
            std::vector<std::string>{"stepwell.\"ticks\" where ((keep_class = $2 and received_day "
                                     "between $3 and $4))"});
  EXPECT_EQ(params.size(), 4u);
}

}  // namespace
}  // namespace stepwell
