// Where caps are set and what holds there, on PostgreSQL.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::kEpoch;
using testing::kNowUs;

constexpr std::int64_t kDay = 86'400;

using CapsSet = CapsStoreTest;

TEST_F(CapsSet, SaysWhatIsSetWhatHoldsAndWhoDecides) {
  const OpenedWriter writer = OpenWriter("run");
  SetCaps({}, {.raw_age_seconds = 30 * kDay, .trial_bytes = 1000});
  SetCaps({.project = "vision"}, {.raw_age_seconds = 10 * kDay});
  SetCaps({.project = "default"}, {.trial_bytes = 2000});
  SetCaps(Of(writer, "gpu"), {.series_samples = 5});
  const auto trial = caps_.Get(Of(writer), kAllProjects);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(trial->set, Caps{});
  EXPECT_EQ(trial->place.project, "default");
  EXPECT_EQ(trial->place.external_id, "run");
  EXPECT_EQ(trial->effective.raw_age_seconds.value, 30 * kDay);
  EXPECT_EQ(trial->effective.trial_bytes.value, 2000);
  EXPECT_EQ(trial->effective.trial_bytes.place->project, "default");
  EXPECT_EQ(trial->effective.series_samples.value, 0);
  ASSERT_EQ(trial->places.size(), 3u) << "above it and below it";
  EXPECT_EQ(trial->places[0].place.owner, CapsOwner::kAll);
  EXPECT_EQ(trial->places[2].place.metric_group, "gpu");
  EXPECT_EQ(trial->places[2].place.external_id, "run");
  EXPECT_EQ(caps_.Get(Of(writer, "gpu"), kAllProjects)->effective.series_samples.value, 5);
  EXPECT_EQ(caps_.Get({}, kAllProjects)->places.size(), 4u) << "all lie below";
  const std::vector<std::string> one = {"vision"};
  const auto told = caps_.Get({}, one);
  ASSERT_EQ(told->places.size(), 2u) << "of one project, and of all trials";
  EXPECT_EQ(told->places[0].place.owner, CapsOwner::kAll);
  EXPECT_EQ(told->places[1].place.project, "vision");
  EXPECT_EQ(caps_.Get({}, std::vector<std::string>())->places.size(), 1u);
  EXPECT_EQ(caps_.Get({.project = "vision"}, kAllProjects)->effective.raw_age_seconds.value,
            10 * kDay)
      << "it has no trial yet";
  EXPECT_EQ(caps_.Get({.project = "nobody's"}, kAllProjects)->effective.raw_age_seconds.value,
            30 * kDay);
  EXPECT_EQ(Number("select count(*) from stepwell.projects where name = 'nobody''s'"), 0);
  const auto of_open = caps_.ReadTrialCaps(writer.trial_id);
  ASSERT_TRUE(of_open.ok()) << of_open.status();
  EXPECT_EQ(of_open->caps.trial_bytes.value, 2000);
  EXPECT_GT(of_open->created_time_us, 0);
}

TEST_F(CapsSet, ChangesFieldsAndClearsThem) {
  SetCaps({}, {.raw_age_seconds = kDay, .rollup_age_seconds = 2 * kDay});
  SetCaps({}, {.series_samples = 7});
  const auto cleared = caps_.Set(kEpoch, {}, kAllProjects, {}, {"raw_age_seconds"});
  ASSERT_TRUE(cleared.ok()) << cleared.status();
  EXPECT_EQ(cleared->set, (Caps{.rollup_age_seconds = 2 * kDay, .series_samples = 7}));
  EXPECT_EQ(cleared->effective.rollup_age_seconds.value, 0) << "samples are kept for ever";
  ASSERT_TRUE(
      caps_.Set(kEpoch, {}, kAllProjects, {}, {"rollup_age_seconds", "series_samples"}).ok());
  EXPECT_EQ(Number("select count(*) from stepwell.caps"), 0);
}

TEST_F(CapsSet, RefusesAndChangesNothing) {
  struct Row {
    std::string name;
    CapsTarget target;
    Caps caps;
    std::vector<std::string> clear;
    absl::StatusCode code;
  };
  using absl::StatusCode;
  for (const Row& row : std::vector<Row>{
           {"a negative age", {}, {.raw_age_seconds = -1}, {}, StatusCode::kInvalidArgument},
           {"an unknown name", {}, {}, {"age"}, StatusCode::kInvalidArgument},
           {"set and cleared",
            {},
            {.trial_bytes = 1},
            {"trial_bytes"},
            StatusCode::kInvalidArgument},
           {"a window of a group",
            {.metric_group = "gpu"},
            {.profiling_window_seconds = 1},
            {},
            StatusCode::kInvalidArgument},
           {"a trial that there is not",
            {.trial = TrialSelector{.external_id = "nobody"}},
            {.trial_bytes = 1},
            {},
            StatusCode::kNotFound},
           {"a group that is no text",
            {.metric_group = "\xff"},
            {.trial_bytes = 1},
            {},
            StatusCode::kInvalidArgument}}) {
    SCOPED_TRACE(row.name);
    const auto set = caps_.Set(kEpoch, row.target, kAllProjects, row.caps, row.clear);
    EXPECT_EQ(set.status().code(), row.code) << set.status();
  }
  EXPECT_EQ(Number("select count(*) from stepwell.caps"), 0);
}

TEST_F(CapsSet, ANinthPairOfAgesIsRefusedUntilOneIsFree) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 2);
  for (int days = 1; days <= 7; ++days) {
    SetCaps({.metric_group = absl::StrCat("g", days)}, {.raw_age_seconds = days * kDay});
  }
  const auto ninth = caps_.Set(kEpoch, Of(writer), kAllProjects, {.raw_age_seconds = 8 * kDay}, {});
  EXPECT_EQ(ninth.status().code(), absl::StatusCode::kFailedPrecondition) << ninth.status();
  EXPECT_NE(std::string(ninth.status().message()).find("7: samples 7 days"), std::string::npos);
  EXPECT_EQ(Number("select count(*) from stepwell.caps where place = 2"), 0) << "not set";
  // One whose rows are there is kept, another may have other ages.
  SetCaps(Of(writer), {.raw_age_seconds = 3 * kDay});
  FillAndMerge(writer, 2, 10);
  ASSERT_TRUE(caps_.Set(kEpoch, Of(writer), kAllProjects, {}, {"raw_age_seconds"}).ok());
  ASSERT_TRUE(
      caps_.Set(kEpoch, {.metric_group = "g3"}, kAllProjects, {}, {"raw_age_seconds"}).ok());
  EXPECT_FALSE(caps_.Set(kEpoch, Of(writer), kAllProjects, {.raw_age_seconds = 8 * kDay}, {}).ok())
      << "rows are in the class of 3 days";
  ASSERT_TRUE(
      caps_.Set(kEpoch, {.metric_group = "g5"}, kAllProjects, {}, {"raw_age_seconds"}).ok());
  SetCaps(Of(writer), {.raw_age_seconds = 8 * kDay});
  EXPECT_EQ(Number("select keep_class from stepwell.keep_classes where raw_age = '192 hours'"), 5);
  FillAndMerge(writer, 2, 10, kNowUs + 1);
  EXPECT_EQ(Text("select string_agg(distinct keep_class::text, ',') from stepwell.metrics"), "3,5");
  ExpectNothingVanished();
}

TEST_F(CapsSet, ManyAtOnceLoseNoChange) {
  std::vector<std::thread> setters;
  for (int i = 0; i < 4; ++i) {
    setters.emplace_back([&, i] {
      PgCapsStore store({.url = url_});
      for (int group = 0; group < 10; ++group) {
        const auto set = store.Set(kEpoch, {.metric_group = absl::StrCat("g", group)}, kAllProjects,
                                   i == 0   ? Caps{.raw_age_seconds = (1 + group % 2) * kDay}
                                   : i == 1 ? Caps{.trial_bytes = 5}
                                   : i == 2 ? Caps{.series_samples = 6}
                                            : Caps{.rollup_age_seconds = 100 * kDay},
                                   {});
        EXPECT_TRUE(set.ok()) << set.status();
      }
    });
  }
  for (std::thread& setter : setters) setter.join();
  EXPECT_EQ(Number("select count(*) from stepwell.caps where raw_age_seconds > 0 and "
                   "trial_bytes = 5 and series_samples = 6 and rollup_age_seconds > 0"),
            10);
  EXPECT_EQ(Number("select count(*) - count(distinct (raw_age, rollup_age)) "
                   "from stepwell.keep_classes where raw_age is not null"),
            0);
}

TEST_F(CapsSet, PlacesOfOneOwnerAreBounded) {
  Run("insert into stepwell.caps (place, place_id, metric_group, trial_bytes) "
      "select 0, 0, 'g' || i, 1 from generate_series(1, 100) i");
  const auto refused =
      caps_.Set(kEpoch, {.metric_group = "one more"}, kAllProjects, {.trial_bytes = 1}, {});
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition) << refused.status();
  SetCaps({.metric_group = "g7"}, {.trial_bytes = 2});
  SetCaps({.project = "p"}, {.trial_bytes = 2});
}

}  // namespace
}  // namespace stepwell
