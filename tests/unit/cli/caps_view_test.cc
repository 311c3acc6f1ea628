// The texts of caps get, set, preview and sweep, and wrong use of them.
#include "client/cli/caps_view.h"

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/unit/cli/golden.h"
#include "tests/unit/cli/outcome.h"
#include "tests/unit/cli/small_master.h"

namespace stepwell::cli {
namespace {

const Paint kPlain(Colours::kOff);

v1::CapsPlace ProjectPlace(const std::string& project, const std::string& group = "") {
  v1::CapsPlace place;
  place.set_project(project);
  place.set_metric_group(group);
  return place;
}

v1::CapsPlace TrialPlace(const std::string& name) {
  v1::CapsPlace place;
  place.mutable_trial()->set_project("vision");
  place.mutable_trial()->set_external_id(name);
  return place;
}

void AddCap(const std::string& field, std::int64_t value, const v1::CapsPlace* place,
            google::protobuf::RepeatedPtrField<v1::EffectiveCap>& caps) {
  v1::EffectiveCap& cap = *caps.Add();
  cap.set_field(field);
  cap.set_value(value);
  if (place != nullptr) *cap.mutable_place() = *place;
}

v1::GetCapsResponse SomeCaps() {
  v1::GetCapsResponse response;
  response.mutable_set()->set_trial_bytes(INT64_C(50) << 30);
  const v1::CapsPlace all;
  const v1::CapsPlace project = ProjectPlace("vision");
  auto& effective = *response.mutable_effective();
  AddCap("raw_age_seconds", 2'592'000, &all, effective);
  AddCap("rollup_age_seconds", 0, nullptr, effective);
  AddCap("trial_bytes", INT64_C(50) << 30, &project, effective);
  AddCap("series_samples", 1'000'000, &all, effective);
  AddCap("profiling_window_seconds", 300, &all, effective);
  v1::PlacedCaps& wide = *response.add_places();
  *wide.mutable_place() = all;
  wide.mutable_caps()->set_raw_age_seconds(2'592'000);
  wide.mutable_caps()->set_series_samples(1'000'000);
  wide.mutable_caps()->set_profiling_window_seconds(300);
  v1::PlacedCaps& own = *response.add_places();
  *own.mutable_place() = project;
  own.mutable_caps()->set_trial_bytes(INT64_C(50) << 30);
  v1::PlacedCaps& below = *response.add_places();
  *below.mutable_place() = TrialPlace("bert\x1b");
  below.mutable_place()->set_metric_group("gpu");
  below.mutable_caps()->set_trial_bytes(0);
  return response;
}

TEST(CapsViewTest, SaysWhatHoldsAndWhoDecides) {
  ExpectGolden("caps.txt", CapsText(ProjectPlace("vision"), SomeCaps(), kPlain));
  ExpectGolden("caps.json", CapsJson(SomeCaps()));
}

TEST(CapsViewTest, NamesPlaces) {
  EXPECT_EQ(PlaceText({}), "all trials");
  EXPECT_EQ(PlaceText(ProjectPlace("vision", "gpu")), "project vision, group gpu");
  EXPECT_EQ(PlaceText(TrialPlace("bert")), "trial bert of project vision");
  v1::CapsPlace place;
  place.mutable_trial()->set_trial_id(7);
  EXPECT_EQ(PlaceText(place), "trial id:7");
}

v1::CapRemoval Removal(std::int64_t trial_id, const std::string& group, const std::string& field) {
  v1::CapRemoval removal;
  removal.set_trial_id(trial_id);
  removal.set_metric_group(group);
  removal.set_field(field);
  removal.set_sample_count(123'456);
  removal.set_raw_bytes(250'000);
  removal.set_first_time_us(1'763'632'882'000'000);
  removal.set_last_time_us(1'763'636'482'000'000);
  return removal;
}

TEST(CapsViewTest, SaysWhatGoes) {
  v1::PreviewCapsResponse preview;
  EXPECT_EQ(PreviewText(preview, kPlain), "A sweep would remove nothing.\n");
  *preview.add_removals() = Removal(7, "", "trial_bytes");
  *preview.add_removals() = Removal(1'000'000'000, "gpu", "series_samples");
  v1::CapRemoval& rollups = *preview.add_removals();
  rollups.set_trial_id(1'000'000'001);
  rollups.set_field("rollup_age_seconds");
  rollups.set_rollup_bytes(4096);
  preview.set_sample_count(246'912);
  preview.set_raw_bytes(500'000);
  preview.set_rollup_bytes(4096);
  preview.set_truncated(true);
  ExpectGolden("caps_preview.txt", PreviewText(preview, kPlain));
  v1::SweepCapsResponse sweep;
  EXPECT_EQ(SweepText(sweep, kPlain), "Nothing was to be removed.\n");
  *sweep.mutable_removals() = preview.removals();
  sweep.set_sample_count(246'912);
  sweep.set_raw_bytes(500'000);
  sweep.set_rollup_bytes(4096);
  sweep.set_leaves_left(2);
  ExpectGolden("caps_sweep.txt", SweepText(sweep, kPlain));
}

TEST(CapsViewTest, TellsWhatGoesByCapsThatAreAboutToBeSet) {
  v1::PreviewCapsResponse now;
  *now.add_removals() = Removal(7, "", "trial_bytes");
  *now.add_removals() = Removal(8, "gpu", "series_samples");
  v1::PreviewCapsResponse would = now;
  EXPECT_TRUE(RemovedBesides(would, now).removals().empty());
  // More of what goes anyway, another cap of the same, and what does not go so far.
  would.mutable_removals(1)->set_sample_count(200'000);
  *would.add_removals() = Removal(7, "", "series_samples");
  v1::CapRemoval& traces = *would.add_removals();
  traces.set_trial_id(9);
  traces.set_field("trial_trace_bytes");
  traces.set_trace_count(2);
  traces.set_trace_bytes(4096);
  const v1::PreviewCapsResponse goes = RemovedBesides(would, now);
  ASSERT_EQ(goes.removals_size(), 3);
  EXPECT_EQ(goes.removals(0).trial_id(), 8);
  EXPECT_EQ(goes.removals(1).field(), "series_samples");
  EXPECT_EQ(goes.sample_count(), 323'456);
  EXPECT_EQ(goes.raw_bytes(), 500'000);
  const std::string text = CapsRemoveText(ProjectPlace("vision"), goes, kPlain);
  EXPECT_NE(text.find("\nWith these caps of project vision the next sweep would remove 323,456 "
                      "samples (488 KiB) and 0 B of rollups, and 2 traces (4.00 KiB), for good.\n"),
            std::string::npos)
      << text;
  // What is not listed may be what matters.
  would.set_truncated(true);
  EXPECT_EQ(RemovedBesides(would, now).removals_size(), 4);
}

TEST(CapsCommandsTest, RefuseWrongUse) {
  struct Row {
    std::vector<std::string> words;
    std::string says;
  };
  const Row rows[] = {
      {{"set"},
       "nothing is to be set; allowed: --clear CAP, and --CAP with a value, of raw-age, "
       "rollup-age, "
       "bytes, samples, window, trace-bytes, traces-bytes, trace-age"},
      {{"set", "--raw-age", "soon"},
       "--raw-age is 'soon'; allowed: an age such as 30d, 2y or 1h30m (y, w, d, h, m, s), or none"},
      {{"set", "--bytes", "50gigs"},
       "--bytes is '50gigs'; allowed: bytes such as 50GiB, 1.5TB or 4096, or none"},
      {{"set", "--clear", "age"},
       "--clear is 'age'; allowed: raw-age, rollup-age, bytes, samples, window, trace-bytes, "
       "traces-bytes, trace-age"},
      {{"set", "--bytes", "1GiB", "--clear", "samples,bytes"},
       "--bytes and --clear bytes exclude each other"},
      {{"get", "--trial", "id:0"},
       "TRIAL is 'id:0'; allowed: NAME, or id: and a number 1 ... 9223372036854775807"},
      {{"get", "--trial", "id:7", "--project", "vision"},
       "--project goes with a NAME; 'id:7' is a number"},
      {{"preview", "--window", "0"},
       "--window is '0'; allowed: an age such as 30d, 2y or 1h30m (y, w, d, h, m, s), or none"},
      {{"preview", "--samples", "1M", "--clear", "samples"},
       "--samples and --clear samples exclude each other"},
  };
  for (const Row& row : rows) {
    std::vector<std::string> words = {"caps"};
    words.insert(words.end(), row.words.begin(), row.words.end());
    const Outcome outcome = RunWords(words);
    EXPECT_EQ(outcome.exit, kExitUsage) << row.says;
    EXPECT_EQ(outcome.err, absl::StrCat("stepwell caps ", row.words[0], ": ", row.says,
                                        "\nTry 'stepwell caps ", row.words[0], " --help'.\n"));
  }
}

TEST(CapsCommandsTest, ASweepThatDidNotEndIsToBeRunAgain) {
  const SmallMaster master;
  const Outcome outcome =
      RunWords({"caps", "sweep", "--group", "slow", "--server", master.address()});
  EXPECT_EQ(outcome.exit, kExitAgain);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.err, "stepwell: the time is over and something is left\n");
}

TEST(CapsCommandsTest, ArchivesAndDeletes) {
  const SmallMaster master;
  const auto ask = [&](std::vector<std::string> words) {
    words.insert(words.end(), {"--server", master.address()});
    return RunWords(words);
  };
  EXPECT_EQ(ask({"admin", "archive", "my-run"}).out,
            "my-run is archived: it can be read, its writers are refused.\n");
  EXPECT_EQ(ask({"admin", "unarchive", "my-run"}).out,
            "my-run is not archived: its writers may open it again.\n");
  EXPECT_EQ(ask({"admin", "delete", "my-run", "--yes"}).out,
            "my-run (id:7) is deleted: 1,200 samples, 4.00 KiB went.\n");
}

}  // namespace
}  // namespace stepwell::cli
