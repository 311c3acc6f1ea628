// Bounds of bytes and samples: what goes, what stays, and that previews say so before.
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/contract/caps_store_test.h"

namespace stepwell {
namespace {

using testing::CapsStoreTest;
using testing::Connect;
using testing::kDayUs;
using testing::kEpoch;
using testing::kNowUs;
using testing::Samples;

constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kAnHourUs = 3'600'000'000;
// The first moment at which samples received at kNowUs are a day old.
constexpr std::int64_t kADayOldUs = 20'002 * kDayUs;

class CapsBounds : public CapsStoreTest {
 protected:
  // `hours` stretches of 600 ticks, an hour apart.
  OpenedWriter FillHours(const std::string& name, int series_count, int hours) {
    const OpenedWriter writer = OpenWriter(name);
    AddSeries(writer.trial_id, series_count);
    for (int hour = 0; hour < hours; ++hour) {
      FillAndMerge(writer, series_count, 600, kNowUs + hour * kAnHourUs);
    }
    return writer;
  }
  std::int64_t Bytes(const OpenedWriter& writer, const std::string& group = "") {
    return Number(absl::StrCat(
        "select coalesce(sum(byte_count + rollup_byte_count), 0)::bigint from stepwell.usage "
        "where trial_id = ",
        Value(writer.trial_id), " and metric_group like '", group.empty() ? "%" : group, "'"));
  }
  // Of one row of metrics with its share of everything.
  std::int64_t RowBytes() {
    return Number("select max(octet_length(record_send(m))) from stepwell.metrics m");
  }
};

TEST_F(CapsBounds, TheOldestBytesOfATrialGo) {
  const OpenedWriter writer = FillHours("t", 8, 6);
  const OpenedWriter other = FillHours("other", 8, 2);
  const std::int64_t other_bytes = Bytes(other);
  const std::int64_t cap = Bytes(writer) * 7 / 10;
  SetCaps(Of(writer), {.trial_bytes = cap});
  const std::int64_t row_bytes = RowBytes();
  const auto preview = caps_.Preview({.target = Of(writer), .now_us = kNowUs}, kAllProjects);
  ASSERT_TRUE(preview.ok()) << preview.status();
  const SweepResult swept = SweepAll();
  EXPECT_LE(Bytes(writer), cap);
  EXPECT_GT(Bytes(writer), cap - std::max<std::int64_t>(cap / 100, 8 * row_bytes));
  EXPECT_EQ(Bytes(other), other_bytes);
  EXPECT_EQ(swept.removed.rollup_bytes, 0) << "samples first";
  for (const CapRemoval& each : swept.removed.removals) EXPECT_EQ(each.field, "trial_bytes");
  EXPECT_NEAR(static_cast<double>(preview->sample_count),
              static_cast<double>(swept.removed.sample_count), 8 * 600);
  EXPECT_NEAR(static_cast<double>(preview->raw_bytes), static_cast<double>(swept.removed.raw_bytes),
              static_cast<double>(8 * row_bytes));
  // What stays is newer than what went, but for the stretch between.
  EXPECT_GE(Number(absl::StrCat("select min(first_time_us) from stepwell.metrics where trial_id = ",
                                Value(writer.trial_id))),
            Number("select max(last_time_us) from stepwell.gaps where cause = 11") - kAnHourUs);
  ExpectNothingVanished();
  EXPECT_EQ(SweepAll().removed.raw_bytes, 0) << "it is held now";
}

TEST_F(CapsBounds, RollupsGoWhenNoSampleIsLeft) {
  const OpenedWriter writer = FillHours("t", 4, 3);
  const std::int64_t rollups = Number("select sum(rollup_byte_count)::bigint from stepwell.usage");
  SetCaps(Of(writer), {.trial_bytes = rollups / 2});
  const SweepResult swept = SweepAll();
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 0);
  EXPECT_LE(Bytes(writer), rollups / 2);
  EXPECT_GT(Bytes(writer), 0);
  EXPECT_EQ(swept.removed.sample_count, 4 * 3 * 600);
  EXPECT_GT(swept.removed.rollup_bytes, 0);
  ExpectNothingVanished();
}

TEST_F(CapsBounds, RowsThatAreNotMergedCountAndGoLater) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 4);
  SetCaps(Of(writer), {.trial_bytes = 1});
  const std::vector<TickTable> tables = {Table(4, 100)};
  Fill(writer, tables);
  EXPECT_EQ(SweepAll().removed.sample_count, 0);
  MergeNow();
  EXPECT_EQ(SweepAll().removed.sample_count, 400);
  EXPECT_EQ(Bytes(writer), 0);
  ExpectNothingVanished();
}

TEST_F(CapsBounds, ABoundOfAGroupLeavesTheOthersAlone) {
  const OpenedWriter writer = FillHours("t", 8, 6);
  const std::int64_t timing = Bytes(writer, "timing"), gpu = Bytes(writer, "gpu");
  SetCaps({.metric_group = "gpu"}, {.trial_bytes = gpu / 2});
  SweepAll();
  EXPECT_LE(Bytes(writer, "gpu"), gpu / 2);
  EXPECT_GT(Bytes(writer, "gpu"), gpu / 2 - std::max(gpu / 200, 4 * RowBytes()) - 4000);
  EXPECT_EQ(Bytes(writer, "timing"), timing);
  EXPECT_EQ(Number("select count(*) from stepwell.gaps where metric_group = 'timing'"), 0);
  ExpectNothingVanished();
  // Once the other group goes too, so do the ticks that both shared.
  SetCaps({.metric_group = "gpu"}, {.trial_bytes = 1});
  SetCaps({.metric_group = "timing"}, {.trial_bytes = 1});
  SweepAll();
  EXPECT_EQ(Number("select count(*) from stepwell.metrics"), 0);
  SweepAll();
  EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 0);
  EXPECT_EQ(Bytes(writer), 0);
  ExpectNothingVanished();
}

TEST_F(CapsBounds, EachSeriesKeepsItsNewestSamples) {
  const OpenedWriter writer = FillHours("t", 4, 6);
  // Two series go on, two do not.
  for (int hour = 6; hour < 8; ++hour) {
    FillAndMerge(writer, 2, 600, kNowUs + hour * kAnHourUs);
  }
  const std::int64_t rollups = Number("select sum(rollup_byte_count)::bigint from stepwell.usage");
  SetCaps({.project = "default"}, {.series_samples = 1500});
  SetCaps({.project = "default", .metric_group = "timing"}, {.series_samples = 0});
  const auto preview = caps_.Preview({.now_us = kNowUs}, kAllProjects);
  ASSERT_TRUE(preview.ok()) << preview.status();
  const SweepResult swept = SweepAll();
  EXPECT_EQ(Text("select string_agg(n::text, ' ' order by series_no) from (select series_no, "
                 "sum(sample_count) as n from stepwell.metrics group by 1) s"),
            "1800 4800 1800 3600")
      << "whole rows, and none for ever";
  EXPECT_EQ(Number("select min(first_time_us) from stepwell.metrics where series_no = 1"),
            kNowUs + 5 * kAnHourUs);
  EXPECT_EQ(swept.removed.sample_count, 5 * 600 + 3 * 600);
  EXPECT_EQ(preview->sample_count, swept.removed.sample_count);
  EXPECT_EQ(Number("select sum(rollup_byte_count)::bigint from stepwell.usage"), rollups);
  ExpectNothingVanished();
  EXPECT_EQ(SweepAll().removed.sample_count, 0);
}

// No time but for one step a call: each call comes further, and they end.
TEST_F(CapsBounds, NoTrialWaitsForeverForOneThatTakesAllTheTime) {
  // Groups whose sums are over the bound and no series is: they are ranked in pieces, and nothing goes.
  const OpenedWriter ranked = OpenWriter("ranked");
  AddSeries(ranked.trial_id, 120);
  FillAndMerge(ranked, 120, 10);
  const OpenedWriter over = FillHours("over", 4, 2);
  SetCaps(Of(ranked), {.series_samples = 10});
  SetCaps(Of(over), {.trial_bytes = 1});
  const SweepRequest no_time{.now_us = kNowUs, .duration_max = absl::ZeroDuration()};
  bool more = true;
  int calls = 0;
  for (; more && calls < 200; ++calls) {
    const auto swept = caps_.Sweep(kEpoch, no_time, kAllProjects);
    ASSERT_TRUE(swept.ok()) << swept.status();
    EXPECT_TRUE(swept->came_further()) << "call " << calls;
    more = swept->more;
  }
  EXPECT_FALSE(more) << "after " << calls << " calls";
  EXPECT_EQ(Bytes(over), 0);
  EXPECT_EQ(Number(absl::StrCat("select sum(sample_count)::bigint from stepwell.usage "
                                "where trial_id = ",
                                Value(ranked.trial_id))),
            1200);
  // What has not changed is not ranked again.
  SweepRequest of_ranked = no_time;
  of_ranked.target = Of(ranked);
  const auto again = caps_.Sweep(kEpoch, of_ranked, kAllProjects);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(again->more);
  FillAndMerge(ranked, 120, 10, kNowUs + kAnHourUs);
  EXPECT_EQ(SweepAll().removed.sample_count, 1200) << "it has changed";
  ExpectNothingVanished();
}

TEST_F(CapsBounds, ATrialThatCannotBeSweptHoldsUpNoOther) {
  const OpenedWriter bad = FillHours("bad", 2, 2), good = FillHours("good", 2, 2);
  const OpenedWriter deleted = FillHours("deleted", 2, 1);
  SetCaps({}, {.trial_bytes = 1});
  Run(absl::StrCat("update stepwell.trials set deleted_time = now() where trial_id = ",
                   Value(deleted.trial_id)));
  RefuseGapsOf(bad.trial_id);
  const auto swept =
      caps_.Sweep(kEpoch, {.now_us = kNowUs, .duration_max = absl::Seconds(20)}, kAllProjects);
  AllowGaps();
  ASSERT_TRUE(swept.ok()) << swept.status();
  EXPECT_NE(swept->failed.message().find(absl::StrCat("trial ", Value(bad.trial_id), ": ")),
            absl::string_view::npos)
      << swept->failed;
  EXPECT_GT(Bytes(bad), 0);
  EXPECT_EQ(Bytes(good), 0);
  EXPECT_EQ(Bytes(deleted), 0);
  SweepAll();
  EXPECT_EQ(Bytes(bad), 0);
  sent_.erase({Value(deleted.trial_id), "gpu"});
  sent_.erase({Value(deleted.trial_id), "timing"});
  ExpectNothingVanished();
}

TEST_F(CapsBounds, TicksOfAMergeUnderWayStay) {
  const OpenedWriter writer = OpenWriter("t");
  AddSeries(writer.trial_id, 8);
  const std::vector<TickTable> tables = {Table(8, 600)};
  Fill(writer, tables);
  SetCaps(Of(writer), {.trial_bytes = 1, .series_samples = 1});
  const MergeLimits limits{
      .fold_no_max = Newest(), .ripe_tick_count = 1, .now_us = kNowUs, .rows_max = 3};
  // Two of four slices, and a sweep after each.
  for (int slice = 0; slice < 2; ++slice) {
    ASSERT_TRUE(folds_->Merge(kEpoch, limits).ok());
    SweepWithoutMerges();
    EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 1);
  }
  MergeAll(limits);
  EXPECT_EQ(Number("select count(*) from stepwell.recent"), 0);
  ExpectNothingVanished();
  SweepAll();
  EXPECT_EQ(Number("select count(*) from stepwell.ticks"), 0);
  EXPECT_EQ(Bytes(writer), 0);
  ExpectNothingVanished();
}

// Rows that were given up lie in their leaf until it is emptied, and rows that were merged late beside them.
TEST_F(CapsBounds, WhatAgeHasGivenUpIsNotTakenOnceMore) {
  SetCaps({}, {.raw_age_seconds = kDay});
  const OpenedWriter bytes = OpenWriter("bytes"), samples = OpenWriter("samples");
  for (const OpenedWriter& writer : {bytes, samples}) {
    AddSeries(writer.trial_id, 8);
    FillAndMerge(writer, 8, 600);
  }
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read; select 1").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_left, 1);
  for (const OpenedWriter& writer : {bytes, samples}) {
    FillAndMerge(writer, 8, 50, kNowUs + kAnHourUs);
    FillAndMerge(writer, 8, 300, kNowUs + kDayUs);
  }
  SetCaps(Of(bytes), {.trial_bytes = Bytes(bytes) - 1});
  SetCaps(Of(samples), {.series_samples = 300});
  for (const OpenedWriter& writer : {bytes, samples}) {
    const auto swept =
        caps_.Sweep(kEpoch, {.target = Of(writer), .now_us = kADayOldUs}, kAllProjects);
    ASSERT_TRUE(swept.ok()) << swept.status();
    EXPECT_EQ(swept->removed.sample_count, 0) << "trial " << Value(writer.trial_id);
  }
  ExpectSentIsHeldOrGap();
  ASSERT_TRUE(reader->ExecScript("commit").ok());
  EXPECT_EQ(SweepAll(kADayOldUs).removed.sample_count, 2 * 8 * 50);
  EXPECT_EQ(SweepAll(kADayOldUs).leaves_emptied, 1);
  EXPECT_EQ(Number("select sum(sample_count)::bigint from stepwell.metrics"), 2 * 8 * 300);
  ExpectNothingVanished();
}

TEST_F(CapsBounds, ASweepOfOnePlaceLeavesTheOthersAlone) {
  const OpenedWriter a = FillHours("a", 2, 2), b = FillHours("b", 2, 2);
  SetCaps({}, {.raw_age_seconds = kDay, .trial_bytes = 1});
  const std::int64_t bytes = Bytes(b);
  const auto swept = caps_.Sweep(kEpoch, {.target = Of(a), .now_us = kNowUs}, kAllProjects);
  ASSERT_TRUE(swept.ok()) << swept.status();
  EXPECT_EQ(Bytes(a), 0);
  EXPECT_EQ(Bytes(b), bytes);
  EXPECT_EQ(caps_
                .Sweep(kEpoch, {.target = CapsTarget{.trial = TrialSelector{.trial_id = 5}}},
                       kAllProjects)
                .status()
                .code(),
            absl::StatusCode::kNotFound);
  const auto nobody =
      caps_.Sweep(kEpoch, {.target = CapsTarget{.project = "nobody's"}}, kAllProjects);
  ASSERT_TRUE(nobody.ok()) << nobody.status();
  EXPECT_EQ(Bytes(b), bytes);
  ExpectNothingVanished();
}

TEST_F(CapsBounds, APreviewTellsWhatOthersCapsWouldDo) {
  const OpenedWriter writer = FillHours("t", 4, 3);
  const std::int64_t a_week_later = kNowUs + 7 * kDayUs;
  const PreviewRequest later{
      .target = Of(writer), .caps = Caps{.raw_age_seconds = kDay}, .now_us = a_week_later};
  EXPECT_EQ(caps_.Preview(later, kAllProjects)->sample_count, 0)
      << "a changed age counts for later rows";
  PreviewRequest as_if = later;
  as_if.for_merged_rows = true;
  const auto preview = caps_.Preview(as_if, kAllProjects);
  ASSERT_TRUE(preview.ok()) << preview.status();
  EXPECT_EQ(preview->sample_count, 4 * 3 * 600);
  EXPECT_EQ(preview->raw_bytes, Number("select sum(byte_count)::bigint from stepwell.usage"));
  EXPECT_EQ(preview->rollup_bytes, 0);
  EXPECT_EQ(preview->removals.size(), 2u);
  as_if.target->metric_group = "gpu";
  EXPECT_EQ(caps_.Preview(as_if, kAllProjects)->sample_count, 2 * 3 * 600);
  EXPECT_EQ(caps_.Preview({.caps = Caps{}}, kAllProjects).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(caps_.Preview({.target = Of(writer), .caps = Caps{.trial_bytes = -1}}, kAllProjects)
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(caps_.Preview({}, kAllProjects)->removals.size(), 0u);
  EXPECT_EQ(Number("select count(*) from stepwell.caps"), 0) << "nothing was set";
}

TEST_F(CapsBounds, APreviewTellsWhatAClearedCapUncovers) {
  const OpenedWriter writer = FillHours("t", 4, 3);
  SetCaps({}, {.series_samples = 600});
  SetCaps(Of(writer), {.trial_bytes = 1, .series_samples = 1'000'000});
  SetCaps(Of(writer, "gpu"), {.series_samples = 0});
  EXPECT_GT(caps_.Preview({.target = Of(writer), .now_us = kNowUs}, kAllProjects)->sample_count, 0);
  const PreviewRequest both{
      .target = Of(writer), .clear = {"trial_bytes", "series_samples"}, .now_us = kNowUs};
  const auto preview = caps_.Preview(both, kAllProjects);
  ASSERT_TRUE(preview.ok()) << preview.status();
  // Those of the group keep their own bound, which is none.
  EXPECT_EQ(preview->sample_count, 2 * 2 * 600);
  for (const CapRemoval& each : preview->removals) EXPECT_EQ(each.field, "series_samples");
  const PreviewRequest bytes_alone{
      .target = Of(writer), .clear = {"trial_bytes"}, .now_us = kNowUs};
  EXPECT_TRUE(caps_.Preview(bytes_alone, kAllProjects)->removals.empty());
  PreviewRequest with_another = both;
  with_another.caps = Caps{.trace_bytes = 5};
  EXPECT_EQ(caps_.Preview(with_another, kAllProjects)->sample_count, preview->sample_count);
  with_another.caps = Caps{.trial_bytes = 5};
  EXPECT_EQ(caps_.Preview(with_another, kAllProjects).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(caps_.Preview({.clear = {"trial_bytes"}}, kAllProjects).status().code(),
            absl::StatusCode::kInvalidArgument)
      << "without a place";
  EXPECT_EQ(caps_.Get(Of(writer), kAllProjects)->set.trial_bytes, 1) << "nothing was cleared";
  // And that is what then goes.
  ASSERT_TRUE(caps_.Set(kEpoch, Of(writer), kAllProjects, {}, both.clear).ok());
  EXPECT_EQ(SweepAll().removed.sample_count, preview->sample_count);
  ExpectNothingVanished();
}

}  // namespace
}  // namespace stepwell
