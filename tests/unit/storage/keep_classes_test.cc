#include "storage/keep_classes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/codec_vectors.h"
#include "tests/unit/storage/placed_caps.h"

namespace stepwell {
namespace {

using testing::OfAll;
using testing::OfProject;
using testing::OfTrial;

constexpr std::int64_t kDay = 86'400;

std::vector<KeepClass> OnlyClassZero() { return {KeepClass{}}; }

TEST(KeepClassesTest, FindsOrTakesTheLowestFreeNumber) {
  KeepClasses classes(std::vector<KeepClass>{{0, {}}, {2, {kDay, 0}}});
  EXPECT_EQ(classes.Find({}), 0);
  EXPECT_EQ(classes.Find({kDay, 0}), 2);
  EXPECT_EQ(classes.Find({kDay, kDay}), std::nullopt);
  EXPECT_EQ(*classes.FindOrCreate({kDay, 0}), 2);
  EXPECT_EQ(*classes.FindOrCreate({kDay, kDay}), 1);
  EXPECT_EQ(*classes.FindOrCreate({2 * kDay, kDay}), 3);
  EXPECT_EQ(classes.Find({kDay, kDay}), 1);
  EXPECT_EQ(classes.all().size(), 4u);
}

TEST(KeepClassesTest, RefusesANinthWithTheListOfThoseThatThereAre) {
  KeepClasses classes(OnlyClassZero());
  for (int days = 1; days < 8; ++days) {
    EXPECT_EQ(*classes.FindOrCreate({days * kDay, 0}), days);
  }
  const auto ninth = classes.FindOrCreate({5, 10});
  ASSERT_EQ(ninth.status().code(), absl::StatusCode::kFailedPrecondition);
  for (const std::string part :
       {"samples 5 s, rollups 10 s", "number 9", "0: samples for ever, rollups for ever",
        "7: samples 7 days, rollups for ever"}) {
    EXPECT_NE(std::string(ninth.status().message()).find(part), std::string::npos)
        << part << " is not in: " << ninth.status();
  }
  EXPECT_EQ(classes.all().size(), 8u);
  EXPECT_EQ(*classes.FindOrCreate({3 * kDay, 0}), 3) << "those that there are go on";
}

TEST(KeepClassesTest, TakesASpareClassButNeverClassZero) {
  KeepClasses classes(OnlyClassZero());
  for (int days = 1; days < 8; ++days) ASSERT_TRUE(classes.FindOrCreate({days * kDay, 0}).ok());
  EXPECT_FALSE(classes.FindOrCreate({5, 10}, {0}).ok());
  EXPECT_EQ(*classes.FindOrCreate({5, 10}, {0, 4}), 4);
  EXPECT_EQ(classes.Find({5, 10}), 4);
  EXPECT_EQ(classes.Find({4 * kDay, 0}), std::nullopt);
}

TEST(KeepClassesTest, KnowsTheAgesThatMayHold) {
  struct Row {
    std::string name;
    std::vector<PlacedCaps> placed;
    std::vector<KeepAges> ages;
  };
  PlacedCaps rollups = OfAll("", std::nullopt);
  rollups.caps.rollup_age_seconds = 100 * kDay;
  for (const Row& row :
       std::vector<Row>{{"nothing is set", {}, {{0, 0}}},
                        {"all", {OfAll("", 7)}, {{7 * kDay, 0}}},
                        {"a group of all", {OfAll("gpu", 7)}, {{0, 0}, {7 * kDay, 0}}},
                        {"samples of one place, rollups of another",
                         {rollups, OfTrial(7, "", 3), OfProject(1, "gpu", 2)},
                         {{0, 0}, {2 * kDay, 100 * kDay}, {3 * kDay, 100 * kDay}}},
                        {"a group of a project beats its trial",
                         {OfTrial(7, "", 3), OfProject(1, "", 4)},
                         {{0, 0}, {3 * kDay, 0}, {4 * kDay, 0}}}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(AgesThatMayHold(row.placed, {{7, 1}}), row.ages);
  }
}

// Against all trials and groups one by one.
TEST(KeepClassesTest, NoTrialHasAgesThatWereNotForeseen) {
  std::mt19937_64 random(testing::TestSeed());
  const auto below = [&](int n) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(n));
  };
  const std::vector<std::pair<std::int64_t, std::int64_t>> trial_projects = {
      {7, 1}, {8, 1}, {9, 2}};
  const std::vector<std::string> groups = {"", "gpu", "cpu"};
  for (int round = 0; round < 200; ++round) {
    std::vector<PlacedCaps> placed;
    for (int i = below(8); i > 0; --i) {
      PlacedCaps each = testing::PlacedAge(static_cast<CapsOwner>(below(3)), 0,
                                           groups[static_cast<std::size_t>(below(3))],
                                           below(2) == 0 ? std::nullopt : std::optional(below(9)));
      if (each.place.owner == CapsOwner::kProject) each.place.owner_id = 1 + below(2);
      if (each.place.owner == CapsOwner::kTrial) each.place.owner_id = 7 + below(3);
      if (below(2) == 0) each.caps.rollup_age_seconds = below(9) * kDay;
      const bool known = std::any_of(placed.begin(), placed.end(), [&](const PlacedCaps& other) {
        return other.place == each.place;
      });
      if (!known) placed.push_back(each);
    }
    const std::vector<KeepAges> ages = AgesThatMayHold(placed, trial_projects);
    EXPECT_TRUE(std::is_sorted(ages.begin(), ages.end()));
    for (const auto& [trial, project] : trial_projects) {
      for (const std::string group : {"", "gpu", "cpu", "disk"}) {
        const KeepAges each = AgesOf(ResolveCaps(placed, project, trial, group));
        EXPECT_TRUE(std::binary_search(ages.begin(), ages.end(), each)) << trial << group;
      }
    }
  }
}

}  // namespace
}  // namespace stepwell
