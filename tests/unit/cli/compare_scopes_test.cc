#include "client/cli/compare_scopes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/cli/compare_maker.h"

namespace stepwell::cli {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

std::vector<std::string> Names(const std::vector<ScopeLine>& lines) {
  std::vector<std::string> names;
  for (const ScopeLine& line : lines) names.push_back(line.name);
  return names;
}

auto About(double value) { return Optional(DoubleNear(value, 1e-9)); }

TEST(CompareScopesTest, TheLargestChangeOfAStepComesFirst) {
  CompareMaker maker({"a", "b"});
  maker.AddTiming("step", {1.0, 0.9});
  maker.AddTiming("load", {0.2, 0.21});
  maker.AddTiming("train", {0.7, 0.5});
  // Long, but once in 100 steps: 2 ms of each.
  maker.AddTiming("validate", {1.0, 1.2}, 12);
  maker.AddTiming("train.count", {2, 2});
  const ScopeLines lines = ScopesOf(maker.data().answer, true);
  EXPECT_THAT(Names(lines.steps), ElementsAre("step"));
  EXPECT_THAT(Names(lines.scopes), ElementsAre("train", "load", "validate"));
  EXPECT_THAT(Names(lines.unaccounted), ElementsAre("unaccounted"));
  EXPECT_THAT(lines.device, IsEmpty());
  EXPECT_NEAR(lines.scopes[2].change_seconds, 0.002, 1e-9);
  EXPECT_THAT(lines.scopes[0].sides[1].difference, About(-0.2));
  EXPECT_THAT(lines.scopes[0].sides[1].ratio, About(5.0 / 7));
  EXPECT_EQ(lines.scopes[0].sides[0].ratio, std::nullopt);
  EXPECT_THAT(lines.steps[0].sides[0].share, Optional(1.0));
  EXPECT_THAT(lines.scopes[2].sides[0].share, About(0.01));
  EXPECT_THAT(lines.unaccounted[0].sides[0].mean, About(1.0 - 0.2 - 0.7 - 0.01));
  EXPECT_THAT(lines.unaccounted[0].sides[1].share, About((0.9 - 0.21 - 0.5 - 0.012) / 0.9));
}

TEST(CompareScopesTest, SharesAreOfOwnTimeAndAddUp) {
  CompareMaker maker({"a", "b"});
  maker.AddTiming("step", {1.0, 2.0});
  maker.AddTiming("train", {0.9, 1.5});
  maker.AddTiming("train/forward", {0.3, 0.3});
  maker.AddTiming("train/forward/block/norm", {0.1, 0.1});  // "train/forward/block" is no scope
  maker.AddTiming("load", {0.1, std::nullopt});
  const ScopeLines lines = ScopesOf(maker.data().answer, true);
  std::map<std::string, std::vector<ScopeSide>> sides;
  for (const auto* part : {&lines.scopes, &lines.unaccounted}) {
    for (const ScopeLine& line : *part) sides[line.name] = line.sides;
  }
  EXPECT_THAT(sides["train"][0].share, About(0.6));
  EXPECT_THAT(sides["train/forward"][0].share, About(0.2));
  EXPECT_THAT(sides["train/forward/block/norm"][0].share, About(0.1));
  EXPECT_THAT(sides["load"][0].share, About(0.1));
  EXPECT_EQ(sides["load"][1].share, std::nullopt);
  EXPECT_EQ(sides["load"][1].mean, std::nullopt);
  EXPECT_EQ(sides["load"][1].difference, std::nullopt);
  EXPECT_THAT(sides["unaccounted"][0].share, Optional(0.0));
  for (const std::size_t trial : {0, 1}) {
    double sum = 0;
    for (const auto& [name, of_trials] : sides) sum += of_trials[trial].share.value_or(0);
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

TEST(CompareScopesTest, RanksKeptApartHaveStepsOfTheirOwn) {
  CompareMaker maker({"a", "b"});
  for (const auto& [rank, seconds] : {std::pair{"0", 1.0}, {"1", 2.0}}) {
    maker.AddTiming("step", {seconds, seconds}, 100, {{"rank", rank}});
    maker.AddTiming("load", {0.5, 0.5}, 100, {{"rank", rank}});
  }
  const ScopeLines lines = ScopesOf(maker.data().answer, true);
  EXPECT_THAT(Names(lines.steps), ElementsAre("step  rank=0", "step  rank=1"));
  EXPECT_THAT(Names(lines.scopes), ElementsAre("load  rank=0", "load  rank=1"));
  EXPECT_THAT(lines.scopes[0].sides[1].share, About(0.5));
  EXPECT_THAT(lines.scopes[1].sides[1].share, About(0.25));
  EXPECT_THAT(Names(lines.unaccounted), ElementsAre("unaccounted  rank=0", "unaccounted  rank=1"));
}

TEST(CompareScopesTest, ADevicesClockStandsApartAndTimeHasNoShares) {
  CompareMaker maker({"a", "b"});
  maker.AddTiming("step", {1.0, 2.0});
  maker.AddTiming("train", {0.5, 0.5});
  maker.AddTiming("train", {0.4, 0.6}, 1200, {{"clock", "device"}});
  ScopeLines lines = ScopesOf(maker.data().answer, true);
  EXPECT_THAT(Names(lines.scopes), ElementsAre("train"));
  EXPECT_THAT(Names(lines.device), ElementsAre("train"));
  EXPECT_EQ(lines.device[0].sides[0].share, std::nullopt);
  EXPECT_THAT(lines.device[0].sides[1].ratio, About(1.5));
  lines = ScopesOf(maker.data().answer, false);
  EXPECT_EQ(lines.steps[0].sides[0].share, std::nullopt);
  EXPECT_EQ(lines.scopes[0].sides[0].share, std::nullopt);
  EXPECT_THAT(lines.unaccounted, IsEmpty());
}

TEST(CompareScopesTest, NoStepsNoShares) {
  CompareMaker maker({"a", "b"});
  maker.AddTiming("load", {0.2, 0.3});
  const ScopeLines lines = ScopesOf(maker.data().answer, true);
  EXPECT_THAT(lines.steps, IsEmpty());
  EXPECT_THAT(Names(lines.scopes), ElementsAre("load"));
  EXPECT_EQ(lines.scopes[0].sides[0].share, std::nullopt);
  EXPECT_THAT(lines.unaccounted, IsEmpty());
}

TEST(CompareScopesTest, DifferencesAreThereWhereTheySaySomething) {
  CompareMaker maker({"a", "b"});
  maker.Add("training", "loss", "nats", {2.0, 3.0});
  maker.Add("training", "rate", "", {2.0, 3.0}, 10, {}, {"1/s", "1/min"});
  maker.Add("training", "none", "1", {std::nullopt, 3.0});
  maker.Add("training", "zero", "", {0.0, 3.0});
  maker.Add("training", "plain", "", {2.0, 3.0});
  const auto& series = maker.data().answer.series();
  EXPECT_THAT(DifferenceOf(series[0], 1), Optional(1.0));
  EXPECT_EQ(DifferenceOf(series[0], 0), std::nullopt);
  EXPECT_TRUE(UnitDiffers(series[1], 1));
  EXPECT_EQ(DifferenceOf(series[1], 1), std::nullopt);
  EXPECT_EQ(DifferenceOf(series[2], 1), std::nullopt);
  EXPECT_THAT(DifferenceOf(series[3], 1), Optional(3.0));
  EXPECT_EQ(RatioOf(series[3], 1), std::nullopt);
  EXPECT_FALSE(UnitDiffers(series[4], 1));
  EXPECT_THAT(RatioOf(series[4], 1), Optional(1.5));
}

TEST(CompareScopesTest, AUnitDiffersWhereATrialHasAnotherThanTheFirst) {
  CompareMaker maker({"a", "b", "c"});
  maker.Add("training", "rate", "", {2.0, 3.0, 4.0}, 10, {}, {"1/s", "1/min", "1/s"});
  maker.Add("training", "mixed", "", {2.0, 3.0, 4.0}, 10, {},
            {CompareMaker::kSeveralUnits, "", ""});
  maker.Add("training", "unitless", "", {0.0, 3.0, 0.0}, 10, {},
            {"", CompareMaker::kSeveralUnits, ""});
  maker.Add("training", "absent", "", {std::nullopt, 3.0, 4.0}, 10, {}, {"1/s", "1/min", "1/s"});
  maker.Add("training", "endless", "", {HUGE_VAL, 3.0, HUGE_VAL});
  const auto& series = maker.data().answer.series();
  const auto differ = [&](int at) {
    return std::vector<bool>{UnitDiffers(series[at], 0), UnitDiffers(series[at], 1),
                             UnitDiffers(series[at], 2)};
  };
  EXPECT_THAT(differ(0), ElementsAre(false, true, false));
  EXPECT_THAT(DifferenceOf(series[0], 2), Optional(2.0));
  EXPECT_EQ(UnitOf(series[0], 1), "1/min");
  EXPECT_THAT(differ(1), ElementsAre(false, true, true));
  EXPECT_THAT(differ(2), ElementsAre(false, true, false));
  EXPECT_THAT(DifferenceOf(series[2], 2), Optional(0.0));
  EXPECT_THAT(differ(3), ElementsAre(false, false, false)) << "there is no first to differ from";
  EXPECT_THAT(differ(4), ElementsAre(false, false, false)) << "a part of infinity is none";
}

// A master of before sides had units tells that of all, or none.
TEST(CompareScopesTest, AnOlderMastersUnitsAreThoseOfTheSeries) {
  CompareMaker maker({"a", "b"});
  maker.Add("training", "loss", "nats", {2.0, 3.0});
  maker.Add("training", "rate", "", {2.0, 3.0}, 10, {}, {"1/s", "1/min"});
  auto& series = *maker.data().answer.mutable_series();
  for (auto& one : series) {
    for (auto& side : *one.mutable_sides()) side.clear_unit();
  }
  EXPECT_EQ(UnitOf(series[0], 1), "nats");
  EXPECT_THAT(DifferenceOf(series[0], 1), Optional(1.0));
  EXPECT_TRUE(UnitDiffers(series[1], 1));
}

TEST(CompareScopesTest, AScopeInAnotherUnitIsNoPartOfAStep) {
  CompareMaker maker({"a", "b", "c"});
  maker.AddTiming("step", {1.0, 1.0, 1.0});
  maker.Add("timing", "load", "", {0.2, 300.0, 0.4}, 1200, {}, {"seconds", "ms", "seconds"});
  const ScopeLines lines = ScopesOf(maker.data().answer, true);
  const std::vector<ScopeSide>& load = lines.scopes.at(0).sides;
  EXPECT_EQ(load[1].unit, "ms");
  EXPECT_THAT(load[1].mean, Optional(300.0));
  EXPECT_TRUE(load[1].unit_differs);
  EXPECT_EQ(load[1].difference, std::nullopt);
  EXPECT_EQ(load[1].share, std::nullopt);
  EXPECT_THAT(load[2].difference, About(0.2));
  EXPECT_THAT(load[2].share, About(0.4));
  EXPECT_NEAR(lines.scopes[0].change_seconds, 0.2, 1e-9);
  EXPECT_THAT(lines.unaccounted.at(0).sides[1].mean, About(1.0)) << "nobody knows what of it is";
}

TEST(CompareDataTest, LabelsThatSayWhereAreFolded) {
  std::vector<v1::Series> series(3);
  (*series[0].mutable_key()->mutable_labels())["rank"] = "0";
  (*series[0].mutable_key()->mutable_labels())["split"] = "train";
  (*series[1].mutable_key()->mutable_labels())["mount"] = "/";
  (*series[1].mutable_key()->mutable_labels())["agent"] = "node";
  EXPECT_THAT(LabelsToKeep(series), ElementsAre("clock", "mount", "split"));
  EXPECT_THAT(LabelsToKeep({}), ElementsAre("clock"));
  for (int i = 0; i < 40; ++i) {
    (*series[2].mutable_key()->mutable_labels())["label" + std::to_string(i)] = "x";
  }
  EXPECT_EQ(LabelsToKeep(series).size(), 32u) << "a request may have no more";
}

TEST(CompareDataTest, RanksAreThoseWithSteps) {
  std::vector<v1::Series> series(4);
  for (int i = 0; i < 4; ++i) {
    series[i].mutable_key()->set_metric_group("timing");
    series[i].mutable_key()->set_name(i == 3 ? "load" : "step");
    (*series[i].mutable_key()->mutable_labels())["rank"] = std::to_string(i / 2 * 2 + i);
  }
  (*series[2].mutable_key()->mutable_labels())["rank"] = "0";
  EXPECT_EQ(CountRanks(series), 2);
  EXPECT_EQ(CountRanks({}), 0);
}

}  // namespace
}  // namespace stepwell::cli
