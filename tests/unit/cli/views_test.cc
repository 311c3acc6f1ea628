// The texts of trials, series, read and admin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/cli/samples_view.h"
#include "client/cli/table.h"
#include "client/cli/trials_view.h"
#include "tests/unit/cli/golden.h"

namespace stepwell::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Paint kPlain(Colours::kOff);

v1::Trial Trial(std::int64_t trial_id, const std::string& project, const std::string& name,
                v1::TrialState state) {
  v1::Trial trial;
  trial.set_trial_id(trial_id);
  trial.set_project(project);
  trial.set_external_id(name);
  trial.set_state(state);
  trial.set_created_time_us(1'763'632'882'000'000);
  trial.set_attempt_count(1);
  return trial;
}

TEST(TrialsViewTest, IsATable) {
  std::vector<v1::Trial> trials = {
      Trial(1'000'000'001, "vision", "r\xC3\xA9sum\xC3\xA9", v1::TRIAL_STATE_RUNNING),
      Trial(1'000'000'000, "default", "demo", v1::TRIAL_STATE_COMPLETED),
      Trial(7, "default", "", v1::TRIAL_STATE_LOST)};
  trials[1].set_first_sample_time_us(1'763'632'882'000'000);
  trials[1].set_last_sample_time_us(1'763'632'973'700'000);
  trials[1].set_sample_count(123'456);
  trials[1].set_samples_missing(1'200);
  trials[1].set_has_missing_samples(true);
  trials[2].set_has_missing_samples(true);
  ExpectGolden("trials.txt", TrialsText(trials, kPlain));
  ExpectGolden("trials.json", TrialsJson(trials));
  EXPECT_EQ(TrialsText({}, kPlain), "No trials.\n");
}

std::vector<v1::Series> SomeSeries() {
  std::vector<v1::Series> all(2);
  all[0].set_series_no(1);
  all[0].mutable_key()->set_metric_group("cpu");
  all[0].mutable_key()->set_name("cpu_util_simple");
  (*all[0].mutable_key()->mutable_labels())["agent"] = "node-17";
  all[0].set_unit("percent");
  all[0].set_kind(v1::SERIES_KIND_GAUGE);
  all[1].set_series_no(12);
  all[1].mutable_key()->set_metric_group("timing");
  all[1].mutable_key()->set_name("train_batch/forward");
  (*all[1].mutable_key()->mutable_labels())["rank"] = "0";
  (*all[1].mutable_key()->mutable_labels())["clock"] = "device";
  all[1].set_unit("seconds");
  all[1].set_kind(v1::SERIES_KIND_DURATION);
  return all;
}

TEST(SeriesViewTest, IsATable) {
  ExpectGolden("series.txt", SeriesText(SomeSeries(), kPlain));
  ExpectGolden("series.json", SeriesJson(SomeSeries()));
}

v1::ReadSamplesResponse SomeSamples() {
  v1::ReadSamplesResponse response;
  *response.mutable_series() = SomeSeries()[0];
  const double values[] = {0.1, std::nan(""), -INFINITY, -0.0, 1e300};
  for (int i = 0; i < 5; ++i) {
    response.add_timestamps_us(1'763'632'882'000'000 + i * 1'000'001);
    response.add_batches(i - 1);
    response.add_values(values[i]);
  }
  response.add_attempts(2);
  return response;
}

TEST(SamplesViewTest, IsALinePerSample) {
  SamplesView text(SamplesView::Form::kText, 100);
  ExpectGolden("read.txt", text.Lines(SomeSamples()));
  SamplesView json(SamplesView::Form::kJson, 100);
  ExpectGolden("read.jsonl", json.Lines(SomeSamples()));
}

TEST(SamplesViewTest, StopsAtItsLimitAndSaysSo) {
  SamplesView view(SamplesView::Form::kText, 7);
  view.Lines(SomeSamples());
  EXPECT_FALSE(view.full());
  view.Lines(SomeSamples());
  EXPECT_TRUE(view.full());
  EXPECT_EQ(
      view.Ending(),
      "stopped after 7 samples, all of the first series that matches; --group, --name and --label "
      "choose, --limit 0 prints all\n");
}

TEST(AdminViewTest, Texts) {
  v1::FlushResponse flush;
  EXPECT_EQ(FlushText(flush), "Nothing to fold: SQL sees every acked sample.\n");
  flush.set_sample_count(12'345);
  flush.set_trial_count(1);
  EXPECT_EQ(FlushText(flush), "Folded 12,345 samples of 1 trial: SQL sees every acked sample.\n");
  v1::GetStatusResponse status;
  status.set_version("0.1.0");
  status.set_master_id("m-1");
  status.set_epoch(3);
  status.set_role("owner");
  status.set_database_up(true);
  status.set_unfolded_bytes(3 << 20);
  status.set_samples_committed(1'234'567);
  ExpectGolden("status.txt", StatusText(status, kPlain));
}

TEST(AdminViewTest, ADiskWithoutAByteIsNoDiskThatNobodyKnows) {
  v1::GetStatusResponse status;
  EXPECT_THAT(StatusText(status, kPlain), HasSubstr("not known: the database is elsewhere\n"));
  status.set_disk_error("disk low: 0 MiB free for PostgreSQL's data, the mark is 512 MiB");
  const std::string text = StatusText(status, kPlain);
  EXPECT_THAT(text, HasSubstr("  0 B: disk low: 0 MiB free for PostgreSQL's data"));
  EXPECT_THAT(text, Not(HasSubstr("not known")));
}

TEST(AdminViewTest, TheStatusNamesWhoIsConnectedAndCountsTheRest) {
  constexpr std::int64_t kNowUs = 1'763'632'882'000'000;
  v1::GetStatusResponse status;
  status.set_answered_time_us(kNowUs);
  v1::ConnectedAgent& agent = *status.add_agents();
  agent.set_agent_id("node\x1b-7");
  agent.set_agent_version("stepwell-agent/0.1.0");
  agent.set_writers_open(9);
  agent.set_since_time_us(kNowUs - 3'600'000'000);
  agent.set_seen_time_us(kNowUs - 12'000'000);
  // By a master whose clock was set back meanwhile.
  status.add_agents()->set_seen_time_us(kNowUs + 1);
  status.set_agents_left_out(1200);
  const std::string text = StatusText(status, kPlain);
  EXPECT_EQ(text.substr(text.find("\n\n") + 2),
            "HOST        VERSION               WRITERS  CONNECTED SINCE          SILENT FOR\n"
            "node\\x1b-7  stepwell-agent/0.1.0        9  2025-11-20 09:01:22 UTC      12.0 s\n"
            "-           -                           0  -                               0 s\n"
            "and 1,200 more; listed are those that were silent the longest\n");
}

TEST(AdminViewTest, ProfilingSaysWhoWasTold) {
  v1::SetProfilingResponse response;
  EXPECT_EQ(
      ProfilingText("t\x1b", response),
      "t\\x1b: recording is off. No writer of it is open; those that open later will be told.\n");
  response.set_writers_told(1);
  response.mutable_profiling()->set_on(true);
  response.mutable_profiling()->set_interval_us(2'500'000);
  EXPECT_EQ(ProfilingText("t", response),
            "t: recording is on, every 2.50 s. 1 open writer was told.\n");
}

TEST(TableTest, AlignsByColumnsOfTextNotBytes) {
  Table table({{"a"}, {"empty"}, {"b", Align::kRight}});
  table.Add({"\xC3\xA9\xC3\xA9\xC3\xA9", "", "1"});
  table.Add({"x", "", "22"});
  EXPECT_EQ(table.Text(kPlain, "> "), "> a     b\n> \xC3\xA9\xC3\xA9\xC3\xA9   1\n> x    22\n");
}

}  // namespace
}  // namespace stepwell::cli
