#include "storage/caps.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "storage/caps_store.h"
#include "tests/unit/storage/placed_caps.h"

namespace stepwell {
namespace {

using testing::OfAll;
using testing::OfProject;
using testing::OfTrial;

TEST(CapsTest, TheNarrowestPlaceThatSetsAFieldDecidesIt) {
  // Each place says its rank in days.
  const std::vector<PlacedCaps> placed = {
      OfTrial(7, "gpu", 6),    OfAll("", 1),         OfProject(3, "gpu", 5),
      OfTrial(7, "", 3),       OfProject(3, "", 2),  OfAll("gpu", 4),
      OfTrial(8, "", 30),      OfProject(4, "", 20), OfTrial(8, "gpu", 60),
      OfProject(4, "gpu", 50), OfAll("cpu", 40),
  };
  struct Row {
    std::string name;
    std::int64_t project, trial;
    std::string group;
    std::int64_t days;
  };
  for (const Row& row : std::vector<Row>{{"a group of a trial", 3, 7, "gpu", 6},
                                         {"a trial", 3, 7, "", 3},
                                         {"a trial, a group that nobody names", 3, 7, "disk", 3},
                                         {"a group of all over a trial", 3, 7, "cpu", 40},
                                         {"another trial of the project", 3, 9, "", 2},
                                         {"a group of a project", 3, 9, "gpu", 5},
                                         {"the project itself", 3, 0, "", 2},
                                         {"a project that sets nothing", 5, 0, "", 1},
                                         {"a group of all", 5, 11, "gpu", 4},
                                         {"everything", 0, 0, "", 1}}) {
    SCOPED_TRACE(row.name);
    const EffectiveCaps caps = ResolveCaps(placed, row.project, row.trial, row.group);
    EXPECT_EQ(caps.raw_age_seconds.value, row.days * 86'400);
    ASSERT_TRUE(caps.raw_age_seconds.place.has_value());
    // Who says so: the only place with that many days.
    for (const PlacedCaps& each : placed) {
      if (each.caps.raw_age_seconds == row.days * 86'400) {
        EXPECT_EQ(*caps.raw_age_seconds.place, each.place);
      }
    }
    EXPECT_EQ(caps.trial_bytes.value, 0);
    EXPECT_FALSE(caps.trial_bytes.place.has_value()) << "the product's default";
  }
  EXPECT_FALSE(ResolveCaps({}, 3, 7, "gpu").raw_age_seconds.place.has_value());
}

TEST(CapsTest, FieldsAreDecidedEachByItself) {
  PlacedCaps all = OfAll("", 10), trial = OfTrial(7, "", std::nullopt);
  all.caps.trial_bytes = 1000;
  trial.caps.trial_bytes = 0;
  const EffectiveCaps caps = ResolveCaps({all, trial}, 1, 7, "");
  EXPECT_EQ(caps.raw_age_seconds.value, 864'000);
  EXPECT_EQ(caps.raw_age_seconds.place->owner, CapsOwner::kAll);
  EXPECT_EQ(caps.trial_bytes.value, 0) << "no bound, and set so";
  EXPECT_EQ(caps.trial_bytes.place->owner, CapsOwner::kTrial);
}

TEST(CapsTest, RollupsAreNeverKeptShorterThanSamples) {
  struct Row {
    std::string name;
    std::int64_t raw, rollup, effective;
    CapsOwner decides;
  };
  // Samples by a trial, rollups by all.
  for (const Row& row : std::vector<Row>{{"longer", 10, 20, 20, CapsOwner::kAll},
                                         {"equal", 10, 10, 10, CapsOwner::kAll},
                                         {"shorter", 10, 5, 10, CapsOwner::kTrial},
                                         {"samples for ever", 0, 5, 0, CapsOwner::kTrial},
                                         {"rollups for ever", 10, 0, 0, CapsOwner::kAll}}) {
    SCOPED_TRACE(row.name);
    PlacedCaps all = OfAll("", std::nullopt);
    all.caps.rollup_age_seconds = row.rollup * 86'400;
    const EffectiveCaps caps = ResolveCaps({all, OfTrial(7, "", row.raw)}, 1, 7, "");
    EXPECT_EQ(caps.rollup_age_seconds.value, row.effective * 86'400);
    EXPECT_EQ(caps.rollup_age_seconds.place->owner, row.decides);
  }
}

TEST(CapsTest, BytesOfAGroupAreBoundedWhereTheGroupIsNamed) {
  PlacedCaps trial = OfTrial(7, "", std::nullopt), group = OfAll("gpu", std::nullopt);
  trial.caps.trial_bytes = 1000;
  group.caps.trial_bytes = 10;
  EXPECT_EQ(GroupBytesCap(ResolveCaps({trial}, 1, 7, "gpu")), 0) << "a bound of the whole trial";
  EXPECT_EQ(GroupBytesCap(ResolveCaps({trial, group}, 1, 7, "gpu")), 10);
  EXPECT_EQ(GroupBytesCap(ResolveCaps({trial, group}, 1, 7, "cpu")), 0);
  EXPECT_EQ(ResolveCaps({trial, group}, 1, 7, "").trial_bytes.value, 1000);
}

TEST(CapsTest, SaysWhichFieldIsWrongAndWhatIsAllowed) {
  struct Row {
    std::string name;
    Caps caps;
    std::string group;
    std::string says;  // empty = fine
  };
  for (const Row& row : std::vector<Row>{
           {"nothing", {}, "", ""},
           {"no bounds", kDefaultCaps, "", ""},
           {"the longest", {.raw_age_seconds = kCapAgeSecondsMax}, "gpu", ""},
           {"negative", {.raw_age_seconds = -1}, "", "raw_age_seconds: -1; allowed are 0"},
           {"over 100 years",
            {.rollup_age_seconds = kCapAgeSecondsMax + 1},
            "",
            "rollup_age_seconds: 3153600001; allowed are 0 (no bound) to 3153600000"},
           {"bytes", {.trial_bytes = INT64_MIN}, "", "trial_bytes: "},
           {"samples", {.series_samples = kCapCountMax + 1}, "", "series_samples: "},
           {"rollups shorter",
            {.raw_age_seconds = 10, .rollup_age_seconds = 9},
            "",
            "rollup_age_seconds: 9; "},
           {"rollups shorter than for ever",
            {.raw_age_seconds = 0, .rollup_age_seconds = 9},
            "",
            "allowed are 0 (no bound), as raw_age_seconds is"},
           {"rollups for ever", {.raw_age_seconds = 10, .rollup_age_seconds = 0}, "", ""},
           {"a window of a group",
            {.profiling_window_seconds = 0},
            "gpu",
            "profiling_window_seconds: "},
           {"a window", {.profiling_window_seconds = 300}, "", ""},
           {"a long group", {}, std::string(129, 'g'), "metric_group: 129 bytes"},
           {"the longest group", {}, std::string(128, 'g'), ""},
           {"a NUL", {}, std::string("g\0", 2), "metric_group: "}}) {
    SCOPED_TRACE(row.name);
    const absl::Status status = CheckCaps(row.caps, {.metric_group = row.group});
    EXPECT_EQ(status.ok(), row.says.empty()) << status;
    if (row.says.empty()) continue;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(status.message()).find(row.says), std::string::npos) << status;
  }
}

TEST(CapsTest, ChangesWhatIsNamedAndNothingElse) {
  Caps stored = {.raw_age_seconds = 1, .trial_bytes = 2, .series_samples = 3};
  ASSERT_TRUE(ChangeCaps({.trial_bytes = 5}, {"series_samples"}, stored).ok());
  EXPECT_EQ(stored, (Caps{.raw_age_seconds = 1, .trial_bytes = 5}));
  const Caps before = stored;
  for (const std::string name : {"trial_byte", "", "trial_bytes"}) {
    SCOPED_TRACE(name);
    Caps changed = before;
    const absl::Status status = ChangeCaps({.trial_bytes = 6}, {name}, changed);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  }
}

TEST(CapsTest, RefusesATargetThatNamesNoPlace) {
  struct Row {
    std::string name;
    CapsTarget target;
    bool ok;
  };
  const TrialSelector by_id{.trial_id = 7}, by_name{.external_id = "run"};
  for (const Row& row : std::vector<Row>{
           {"all", {}, true},
           {"a group of all", {.metric_group = "gpu"}, true},
           {"a project", {.project = "p"}, true},
           {"a project without a name", {.project = ""}, false},
           {"a trial by id", {.trial = by_id}, true},
           {"a trial by name", {.trial = by_name}, true},
           {"a trial by nothing", {.trial = TrialSelector{}}, false},
           {"a trial by both", {.trial = TrialSelector{.trial_id = 7, .external_id = "r"}}, false},
           {"a trial below 1", {.trial = TrialSelector{.trial_id = -1}}, false},
           {"a project and a trial", {.project = "p", .trial = by_id}, false},
           {"a long group", {.metric_group = std::string(129, 'g')}, false}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(CheckTarget(row.target).ok(), row.ok) << CheckTarget(row.target);
  }
}

TEST(CapsTest, AgesCountFromTheEndOfTheDay) {
  constexpr std::int64_t kDayUs = INT64_C(86'400'000'000);
  EXPECT_FALSE(IsOverAge(10, 3600, 11 * kDayUs + 3'599'999'999));
  EXPECT_TRUE(IsOverAge(10, 3600, 11 * kDayUs + 3'600'000'000));
  EXPECT_FALSE(IsOverAge(0, 0, INT64_MAX)) << "0 = for ever";
  EXPECT_FALSE(IsOverAge(20'000, kCapAgeSecondsMax, 20'001 * kDayUs));
}

}  // namespace
}  // namespace stepwell
