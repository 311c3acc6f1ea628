#include "storage/caps_preview.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/storage/placed_caps.h"

namespace stepwell {
namespace {

using testing::OfAll;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kDayUs = kDay * 1'000'000;
constexpr std::int32_t kToday = 20'000;

// 100 samples in 1000 bytes, 300 bytes of rollups.
PreviewLine Line(std::int32_t day, std::int16_t keep_class, const std::string& group) {
  return {.received_day = day,
          .keep_class = keep_class,
          .metric_group = group,
          .sample_count = 100,
          .byte_count = 1000,
          .rollup_byte_count = 300,
          .first_time_us = day * kDayUs,
          .last_time_us = day * kDayUs + 1'000'000};
}

class CapsPreviewTest : public ::testing::Test {
 protected:
  // Three days of gpu in class 1 (a day, two days), today of cpu in class 0.
  CapRemovals Plan(const std::vector<PlacedCaps>& placed) {
    rules_.placed = placed;
    rules_.classes = {{0, {}}, {1, {kDay, 2 * kDay}}};
    rules_.now_us = now_us_;
    PreviewTrial trial{.trial_id = TrialId{7}, .project_id = 1, .excess = excess_};
    for (std::int32_t day = kToday - 2; day <= kToday; ++day) {
      trial.lines.push_back(Line(day, 1, "gpu"));
    }
    trial.lines.push_back(Line(kToday, 0, "cpu"));
    CapRemovals removals;
    PlanPreview(trial, rules_, removals);
    removals.Sort();
    return removals;
  }
  static PlacedCaps Bytes(const std::string& group, std::int64_t bytes) {
    PlacedCaps placed = OfAll(group, std::nullopt);
    placed.caps.trial_bytes = bytes;
    return placed;
  }

  std::int64_t now_us_ = kToday * kDayUs;
  PreviewRules rules_;
  std::map<std::string, SampleExcess> excess_;
};

TEST_F(CapsPreviewTest, AgesAreThoseOfTheRowsClasses) {
  EXPECT_EQ(Plan({OfAll("", 1)}).sample_count, 100) << "of the day before yesterday";
  now_us_ += kDayUs;
  const CapRemovals later = Plan({});
  EXPECT_EQ(later.sample_count, 200);
  EXPECT_EQ(later.raw_bytes, 2000);
  EXPECT_EQ(later.rollup_bytes, 300);
  ASSERT_EQ(later.removals.size(), 2u);
  EXPECT_EQ(later.removals[0].field, "raw_age_seconds");
  EXPECT_EQ(later.removals[0].first_time_us, (kToday - 2) * kDayUs);
  EXPECT_EQ(later.removals[0].last_time_us, (kToday - 1) * kDayUs + 1'000'000);
  EXPECT_EQ(later.removals[1].field, "rollup_age_seconds");
}

TEST_F(CapsPreviewTest, OrOfTheCapsWhereRowsAreTakenAsMergedNow) {
  rules_.for_merged_rows = true;
  EXPECT_EQ(Plan({}).sample_count, 0);
  now_us_ += 3 * kDayUs;
  EXPECT_EQ(Plan({OfAll("cpu", 1)}).sample_count, 100);
  EXPECT_EQ(Plan({OfAll("", 1)}).sample_count, 400);
}

TEST_F(CapsPreviewTest, BytesGoFromTheOldestAndRollupsLast) {
  now_us_ = 0;  // no age has passed
  struct Row {
    std::string name;
    PlacedCaps bound;
    std::int64_t samples, raw, rollups;
  };
  for (const Row& row : std::vector<Row>{{"under it", Bytes("", 5200), 0, 0, 0},
                                         {"a line and a half", Bytes("", 3700), 150, 1500, 0},
                                         {"all samples", Bytes("", 1200), 400, 4000, 0},
                                         {"rollups, too", Bytes("", 700), 400, 4000, 500},
                                         {"everything", Bytes("", 1), 400, 4000, 1199},
                                         {"a group", Bytes("cpu", 800), 50, 500, 0},
                                         {"no bound", Bytes("", 0), 0, 0, 0}}) {
    SCOPED_TRACE(row.name);
    const CapRemovals removals = Plan({row.bound});
    EXPECT_EQ(removals.sample_count, row.samples);
    EXPECT_EQ(removals.raw_bytes, row.raw);
    EXPECT_EQ(removals.rollup_bytes, row.rollups);
  }
}

TEST_F(CapsPreviewTest, SamplesBeyondTheirBoundGoBeforeBytesAreCounted) {
  now_us_ = 0;
  excess_["gpu"] = {.sample_count = 150, .first_time_us = 5, .last_time_us = 6};
  CapRemovals removals = Plan({});
  EXPECT_EQ(removals.sample_count, 150);
  EXPECT_EQ(removals.raw_bytes, 1500);
  EXPECT_EQ(removals.removals.at(0).field, "series_samples");
  EXPECT_EQ(removals.removals.at(0).first_time_us, 5);
  removals = Plan({Bytes("", 3700)});
  EXPECT_EQ(removals.sample_count, 150) << "that is enough for the bytes as well";
  rules_.only_group = "cpu";
  EXPECT_EQ(Plan({Bytes("", 1)}).sample_count, 0) << "neither is of this group";
}

}  // namespace
}  // namespace stepwell
