#include "storage/leaf_sweep.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stepwell {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kDayUs = kDay * 1'000'000;
constexpr std::int32_t kToday = 20'000;
constexpr std::int64_t kNowUs = kToday * kDayUs + 5;

TEST(LeafSweepTest, ReadsNamesOfLeaves) {
  struct Row {
    std::string name;
    bool ok;
    LeafPair pair;
    std::int16_t keep_class;
    std::int32_t day;
  };
  for (const Row& row :
       std::vector<Row>{{"metrics_k0_20241004", true, LeafPair::kSamples, 0, 20'000},
                        {"ticks_k7_19700101", true, LeafPair::kSamples, 7, 0},
                        {"rollups_k1_20241005", true, LeafPair::kRollups, 1, 20'001},
                        {"rollup_ticks_k1_20241005", true, LeafPair::kRollups, 1, 20'001},
                        {"metrics_by_series", false, {}, 0, 0},
                        {"metrics_k_20241004", false, {}, 0, 0},
                        {"metrics_k1_2024100", false, {}, 0, 0},
                        {"metrics_k1_202410045", false, {}, 0, 0},
                        {"metrics_kx_20241004", false, {}, 0, 0},
                        {"metrics_k1_2024x004", false, {}, 0, 0},
                        {"recent_0", false, {}, 0, 0},
                        {"", false, {}, 0, 0}}) {
    SCOPED_TRACE(row.name);
    const auto leaf = ParseLeafName(row.name);
    ASSERT_EQ(leaf.has_value(), row.ok);
    if (!row.ok) continue;
    EXPECT_EQ(leaf->pair, row.pair);
    EXPECT_EQ(leaf->key, (LeafKey{row.keep_class, row.day}));
  }
}

TEST(LeafSweepTest, KnowsWhatIsDue) {
  // Class 1: samples for a day, rollups for two.
  const std::vector<KeepClass> classes = {{0, {}}, {1, {kDay, 2 * kDay}}, {2, {kDay, 0}}};
  struct Row {
    std::string name;
    LeafKey key;
    std::int64_t sample_bytes, rollup_bytes;  // -1 = no leaf
    std::vector<SweptLeaf> swept;
    std::string plan;  // s samples, a all, S and R dropped
  };
  const auto swept = [](LeafKey key, bool rollups_too, bool emptied) {
    return std::vector<SweptLeaf>{{.key = key, .rollups_too = rollups_too, .emptied = emptied}};
  };
  const LeafKey due{1, kToday - 2}, both{1, kToday - 3}, old{1, kToday - 4};
  for (const Row& row : std::vector<Row>{
           {"young", {1, kToday - 1}, 10, 10, {}, ""},
           {"samples are due", due, 10, 10, {}, "s"},
           {"both are due", both, 10, 10, {}, "sa"},
           {"nothing is there", due, 0, 0, {}, ""},
           {"only rollups are left", both, 0, 10, {}, "a"},
           {"given up, not emptied yet", due, 10, 10, swept(due, false, false), ""},
           {"given up, and rollups are due now", both, 10, 10, swept(both, false, false), "a"},
           {"both given up", both, 10, 10, swept(both, true, false), ""},
           {"emptied, and rows came late", due, 10, 10, swept(due, false, true), "s"},
           {"class 0 has no ages", {0, 10}, 10, 10, {}, ""},
           {"a class that nobody knows", {5, 10}, 10, 10, {}, ""},
           {"rollups for ever", {2, 10}, 0, 10, {}, "S"},
           {"empty and old", old, 0, 0, swept(old, true, true), "SR"},
           {"empty and old, of class 0", {0, 10}, 0, 0, {}, "SR"},
           {"only one pair is there", {0, 10}, -1, 0, {}, "R"},
           {"empty, not emptied yet", old, 0, 0, swept(old, true, false), ""},
           {"empty and young", {0, kToday - 3}, 0, 0, {}, ""}}) {
    SCOPED_TRACE(row.name);
    std::vector<StoredLeaf> leaves;
    if (row.sample_bytes >= 0) {
      leaves.push_back({{LeafPair::kSamples, row.key}, row.sample_bytes});
      leaves.push_back({{LeafPair::kSamples, row.key}, 0});
    }
    if (row.rollup_bytes >= 0) leaves.push_back({{LeafPair::kRollups, row.key}, row.rollup_bytes});
    const LeafSweep sweep = PlanLeafSweep(leaves, row.swept, classes, kNowUs);
    std::string plan;
    if (!sweep.give_up_samples.empty()) plan += 's';
    if (!sweep.give_up_all.empty()) plan += 'a';
    for (const NamedLeaf& leaf : sweep.drop) plan += leaf.pair == LeafPair::kSamples ? 'S' : 'R';
    EXPECT_EQ(plan, row.plan);
  }
}

TEST(LeafSweepTest, AMarkPassesTrialsWithAllOfTheirLines) {
  struct Row {
    std::string name;
    std::vector<std::int64_t> trial_ids;
    std::int64_t through, long_trial;
    bool more;
  };
  for (const Row& row : std::vector<Row>{{"nothing", {}, 0, 0, false},
                                         {"all there are", {3, 3, 7}, 7, 0, false},
                                         {"the last may have more", {3, 3, 5, 7}, 5, 0, true},
                                         {"the last has some here", {3, 7, 7, 7}, 3, 0, true},
                                         {"one that has too many", {7, 7, 7, 7}, 0, 7, true}}) {
    SCOPED_TRACE(row.name);
    const MarkMove move = PlanMark(row.trial_ids, 4);
    EXPECT_EQ(move.through_trial_id, row.through);
    EXPECT_EQ(move.long_trial_id, row.long_trial);
    EXPECT_EQ(move.more, row.more);
  }
}

}  // namespace
}  // namespace stepwell
