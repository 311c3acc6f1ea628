// Places and caps between the wire and the core: nothing is lost, and what is wrong is named.
#include "server/caps_wire.h"

#include <gtest/gtest.h>

#include <functional>

namespace stepwell {
namespace {

TEST(CapsWireTest, ANameOfAPlaceBecomesATargetAndBack) {
  pb::CapsPlace place;
  CapsTarget target;
  ASSERT_FALSE(CheckPlace(place, target));
  EXPECT_FALSE(target.project || target.trial);

  place.set_project("vision");
  place.set_metric_group("gpu");
  ASSERT_FALSE(CheckPlace(place, target));
  EXPECT_EQ(target.project, "vision");
  EXPECT_EQ(target.metric_group, "gpu");
  EXPECT_EQ(ToWire(CapsPlace{.owner = CapsOwner::kProject,
                             .owner_id = 3,
                             .metric_group = "gpu",
                             .project = "vision"})
                .SerializeAsString(),
            place.SerializeAsString());

  place.mutable_trial()->set_trial_id(7);
  ASSERT_FALSE(CheckPlace(place, target));
  EXPECT_FALSE(target.project);
  ASSERT_TRUE(target.trial);
  EXPECT_EQ(target.trial->trial_id, 7);
  EXPECT_EQ(ToWire(CapsPlace{.owner = CapsOwner::kTrial, .owner_id = 7, .metric_group = "gpu"})
                .SerializeAsString(),
            place.SerializeAsString());

  // A trial that has a name is told by it, as it can be asked for again.
  const pb::CapsPlace named = ToWire(CapsPlace{
      .owner = CapsOwner::kTrial, .owner_id = 7, .project = "vision", .external_id = "bert"});
  ASSERT_FALSE(CheckPlace(named, target));
  EXPECT_EQ(target.trial->external_id, "bert");
  EXPECT_EQ(target.trial->project, "vision");
}

TEST(CapsWireTest, CapsComeBackAsTheyWere) {
  for (unsigned present = 0; present < 32; ++present) {
    Caps caps;
    for (std::size_t i = 0; i < kCapFields.size(); ++i) {
      // The raw age is the shorter one.
      if ((present >> i) % 2 == 1) caps.*kCapFields[i].set = static_cast<std::int64_t>(i);
    }
    if (caps.raw_age_seconds) caps.raw_age_seconds = 1;
    pb::SetCapsRequest request;
    request.mutable_place();
    *request.mutable_caps() = ToWire(caps);
    CapsChange change;
    ASSERT_FALSE(CheckSetCaps(request, change));
    EXPECT_EQ(change.caps, caps);
  }
}

TEST(CapsWireTest, WhatIsWrongIsNamed) {
  struct Row {
    std::function<void(pb::SetCapsRequest&)> change;
    std::string reason;
    std::string says;
  };
  const Row rows[] = {
      {[](auto& request) { request.clear_place(); }, "PLACE", "place is missing"},
      {[](auto& request) { request.mutable_place()->set_project(""); }, "PROJECT_NAME",
       "place.project must be"},
      {[](auto& request) { request.mutable_place()->mutable_trial(); }, "TRIAL_REF",
       "place.trial is missing"},
      {[](auto& request) { request.mutable_place()->set_metric_group("g\n"); }, "CONTROL_CHARACTER",
       "place.metric_group"},
      {[](auto& request) { request.mutable_caps()->set_trial_bytes(-5); }, "CAPS",
       "caps.trial_bytes: -5; allowed are 0 (no bound) to"},
      {[](auto& request) {
         request.mutable_caps()->set_raw_age_seconds(10);
         request.mutable_caps()->set_rollup_age_seconds(9);
       },
       "CAPS", "caps.rollup_age_seconds: 9; rollups live at least as long"},
      {[](auto& request) {
         request.mutable_place()->set_metric_group("gpu");
         request.mutable_caps()->set_profiling_window_seconds(0);
       },
       "CAPS", "caps.profiling_window_seconds: "},
      {[](auto& request) { request.add_clear("bytes"); }, "CLEAR",
       "clear: there is no cap 'bytes'"},
      {[](auto& request) {
         request.mutable_caps()->set_trial_bytes(5);
         request.add_clear("trial_bytes");
       },
       "CLEAR", "clear: trial_bytes is to be set to 5, too"},
      {[](auto& request) {
         for (int i = 0; i < 9; ++i) request.add_clear("trial_bytes");
       },
       "CLEAR", "clear has 9 entries; allowed: 0 ... 8"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.says);
    pb::SetCapsRequest request;
    request.mutable_place();
    row.change(request);
    CapsChange change;
    const MaybeComplaint complaint = CheckSetCaps(request, change);
    ASSERT_TRUE(complaint);
    EXPECT_EQ(complaint->reason, row.reason);
    EXPECT_EQ(complaint->message.substr(0, row.says.size()), row.says);
  }
}

TEST(CapsWireTest, APreviewWithoutAPlaceIsOfAllTrials) {
  pb::PreviewCapsRequest request;
  PreviewRequest preview;
  ASSERT_FALSE(CheckPreviewCaps(request, preview));
  EXPECT_FALSE(preview.target || preview.caps);
  request.mutable_caps()->set_trial_bytes(5);
  request.set_for_merged_rows(true);
  ASSERT_FALSE(CheckPreviewCaps(request, preview));
  EXPECT_TRUE(preview.target);
  EXPECT_EQ(preview.caps->trial_bytes, 5);
  EXPECT_TRUE(preview.for_merged_rows);
}

TEST(CapsWireTest, APreviewClearsAsSettingDoes) {
  pb::PreviewCapsRequest request;
  PreviewRequest preview;
  request.add_clear("series_samples");
  ASSERT_FALSE(CheckPreviewCaps(request, preview));
  EXPECT_TRUE(preview.target) << "of all trials";
  EXPECT_FALSE(preview.caps);
  EXPECT_EQ(preview.clear, std::vector<std::string>{"series_samples"});
  request.mutable_caps()->set_series_samples(5);
  const MaybeComplaint both = CheckPreviewCaps(request, preview);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->reason, "CLEAR");
  request.clear_caps();
  *request.mutable_clear(0) = "samples";
  const MaybeComplaint unknown = CheckPreviewCaps(request, preview);
  ASSERT_TRUE(unknown);
  EXPECT_EQ(unknown->message.substr(0, 35), "clear: there is no cap 'samples'; t");
  for (int i = 0; i < 9; ++i) request.add_clear("series_samples");
  const MaybeComplaint many = CheckPreviewCaps(request, preview);
  ASSERT_TRUE(many);
  EXPECT_EQ(many->message, "clear has 10 entries; allowed: 0 ... 8");
}

TEST(CapsWireTest, ASweepOfAPlaceThatNamesNothingIsOfAllTrials) {
  pb::SweepCapsRequest request;
  std::optional<CapsTarget> target = CapsTarget{};
  ASSERT_FALSE(CheckSweepCaps(request, target));
  EXPECT_FALSE(target);
  request.mutable_place();
  ASSERT_FALSE(CheckSweepCaps(request, target));
  EXPECT_FALSE(target);
  request.mutable_place()->set_metric_group("gpu");
  ASSERT_FALSE(CheckSweepCaps(request, target));
  ASSERT_TRUE(target);
  EXPECT_EQ(target->metric_group, "gpu");
}

TEST(CapsWireTest, EachCapSaysWhoDecides) {
  EffectiveCaps effective;
  effective.trial_bytes = {.value = 9, .place = CapsPlace{}};
  const auto wire = ToWire(effective);
  ASSERT_EQ(wire.size(), kCapFields.size());
  EXPECT_EQ(wire[2].field(), "trial_bytes");
  EXPECT_EQ(wire[2].value(), 9);
  EXPECT_TRUE(wire[2].has_place()) << "all trials";
  EXPECT_FALSE(wire[0].has_place()) << "the default";
}

}  // namespace
}  // namespace stepwell
