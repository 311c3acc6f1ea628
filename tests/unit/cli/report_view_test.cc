#include "client/cli/report_view.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "nlohmann/json.hpp"
#include "tests/unit/cli/golden.h"

namespace stepwell::cli {
namespace {

using Timing = v1::SummarizeTimingsResponse::Timing;

constexpr std::int64_t kStartUs = 1'763'632'882'000'000;  // 2025-11-20 10:01:22 UTC

Timing& AddTiming(ReportData& data, const std::string& name, int rank, double mean, double self,
                  std::int64_t steps = 1200) {
  Timing& timing = *data.timings.add_timings();
  timing.set_name(name);
  timing.set_rank(rank);
  timing.set_in_step(true);
  timing.set_steps(steps);
  timing.set_count(steps);
  timing.set_mean_seconds(mean);
  timing.set_total_seconds(mean * static_cast<double>(steps));
  timing.set_self_seconds(self * static_cast<double>(steps));
  timing.set_share(name == "step" ? 0 : self / 0.0762);
  timing.set_p50_seconds(mean * 0.97);
  timing.set_p95_seconds(mean * 1.4);
  timing.set_p99_seconds(mean * 2.1);
  timing.set_max_seconds(mean * 8);
  timing.set_quantiles_exact(true);
  return timing;
}

void AddRank(ReportData& data, int rank) {
  auto& summary = *data.timings.add_ranks();
  summary.set_rank(rank);
  summary.set_steps(1200);
  summary.set_step_seconds(0.0762 * 1200);
  AddTiming(data, "step", rank, 0.0762, 0);
  AddTiming(data, "train_batch", rank, 0.0562, 0.0018);
  AddTiming(data, "train_batch/forward", rank, 0.020, 0.020);
  AddTiming(data, "train_batch/backward", rank, 0.0344, 0.0344);
  AddTiming(data, "dataloader_next", rank, 0.0152, 0.0152).set_count(2400);
  AddTiming(data, "to_device", rank, 0.0021, 0.0021);
  AddTiming(data, "step_lr_schedulers", rank, 0.0000042, 0.0000042);
  const double accounted = 0.0562 + 0.0152 + 0.0021 + 0.0000042;
  summary.set_unaccounted_seconds((0.0762 - accounted) * 1200);
  summary.set_unaccounted_share((0.0762 - accounted) / 0.0762);
  Timing& device = AddTiming(data, "train_batch/forward", rank, 0.0187, 0);
  (*device.mutable_labels())["clock"] = "device";
  Timing& save = AddTiming(data, "checkpoint", rank, 1.31, 0, 4);
  save.set_in_step(false);
  save.set_steps(0);
  save.set_count(4);
}

void AddMetric(ReportData& data, const std::string& group, const std::string& name,
               const std::string& unit, const std::map<std::string, std::string>& labels,
               std::array<double, 4> values, std::uint64_t count = 917, std::uint64_t nan = 0) {
  auto& series = data.metrics.emplace_back();
  series.mutable_key()->set_metric_group(group);
  series.mutable_key()->set_name(name);
  for (const auto& [label, value] : labels)
    (*series.mutable_key()->mutable_labels())[label] = value;
  series.set_unit(unit);
  series.set_kind(v1::SERIES_KIND_GAUGE);
  series.add_series_nos(static_cast<int>(data.metrics.size()));
  series.add_indexes(0);
  series.add_mins(values[0]);
  series.add_means(values[1]);
  series.add_maxs(values[2]);
  series.add_lasts(values[3]);
  series.add_counts(count);
  if (nan > 0) series.add_nan_counts(nan);
}

ReportData SomeTrial() {
  ReportData data;
  data.trial.set_trial_id(1'000'000'000);
  data.trial.set_project("default");
  data.trial.set_external_id("demo");
  data.trial.set_state(v1::TRIAL_STATE_COMPLETED);
  data.trial.set_first_sample_time_us(kStartUs);
  data.trial.set_last_sample_time_us(kStartUs + 91'700'000);
  data.trial.set_attempt_count(1);
  data.trial.set_writer_count(2);
  data.trial.set_series_count(26);
  data.trial.set_sample_count(123'456);
  data.timings.set_attempt(1);
  data.completeness.set_samples_held(123'456);
  data.completeness.set_contiguous(true);
  AddRank(data, 0);
  const std::map<std::string, std::string> agent = {{"agent", "node-17"}};
  AddMetric(data, "cpu", "cpu_util_simple", "percent", agent, {12.5, 88.42, 100, 97});
  AddMetric(data, "disk", "disk_util", "percent", {{"agent", "node-17"}, {"mount", "/"}},
            {41, 41.3, 41.6, 41.6});
  AddMetric(data, "disk", "disk_throughput_read", "bytes/s", agent, {0, 52'428'800, 2.1e9, 1024});
  AddMetric(data, "memory", "memory_free", "bytes", agent, {3.2e9, 5.9e9, 8.1e9, 5'368'709'120});
  AddMetric(data, "training", "loss", "1", {{"rank", "0"}}, {1.8731, 2.914, 5.549, 1.8802}, 1200,
            3);
  AddMetric(data, "training", "tokens_per_second", "tokens/s", {{"rank", "0"}},
            {10'342, 13'440.5, 13'902, 13'511}, 1200);
  return data;
}

const Paint kPlain(Colours::kOff);

TEST(ReportViewTest, ShowsWhereTheTimeWent) {
  ExpectGolden("report.txt", ReportText(SomeTrial(), {}, kPlain));
}

TEST(ReportViewTest, IsColouredOnATerminal) {
  ExpectGolden("report_colour.txt", ReportText(SomeTrial(), {}, Paint(Colours::kOn)));
}

TEST(ReportViewTest, HasStableJson) { ExpectGolden("report.json", ReportJson(SomeTrial(), {})); }

TEST(ReportViewTest, ShowsOneRankOrTheFirstOnes) {
  ReportData data = SomeTrial();
  for (int rank = 1; rank < 5; ++rank) AddRank(data, rank);
  ReportOptions two;
  two.ranks_max = 2;
  ExpectGolden("report_two_ranks.txt", ReportText(data, two, kPlain));
  const std::string three = ReportText(data, {.rank = 3}, kPlain);
  EXPECT_NE(three.find("Where a step's time goes, rank 3"), std::string::npos);
  EXPECT_EQ(three.find("rank 0"),
            three.find("rank=0") == std::string::npos ? std::string::npos : three.find("rank 0"));
  EXPECT_NE(ReportText(data, {.rank = 9}, kPlain).find("No timings of rank 9."), std::string::npos);
}

TEST(ReportViewTest, SaysWhatIsMissing) {
  ReportData data;
  data.trial.set_trial_id(7);
  data.trial.set_state(v1::TRIAL_STATE_LOST);
  data.completeness.set_samples_held(1000);
  data.completeness.set_samples_missing(240);
  const auto gap = [&](v1::GapCause cause, std::int64_t count) {
    auto& added = *data.completeness.add_gaps();
    added.set_cause(cause);
    added.set_sample_count(count);
  };
  gap(v1::GAP_CAUSE_RING_FULL, 200);
  gap(v1::GAP_CAUSE_RING_FULL, 0);
  gap(v1::GAP_CAUSE_SPOOL_LOST, 40);
  gap(v1::GAP_CAUSE_UNSUPPORTED, 0);
  gap(v1::GAP_CAUSE_CLOCK, 9);
  data.completeness.set_recovering(true);
  data.completeness.set_gaps_truncated(true);
  ExpectGolden("report_incomplete.txt", ReportText(data, {}, kPlain));
}

TEST(ReportViewTest, SaysThatRecordingIsRestrainedAndOfWhichAttempts) {
  ReportData data = SomeTrial();
  data.profiling.set_on(false);
  data.trial.set_attempt_count(3);
  data.timings.set_attempt(3);
  const std::string text = ReportText(data, {}, kPlain);
  for (const char* says : {"\nBy request, recording is off; 'stepwell admin profiling TRIAL on'",
                           "\nWhere a step's time goes, rank 0, attempt 3  ",
                           "\nMachine, all attempts", "\nTraining, all attempts"}) {
    EXPECT_NE(text.find(says), std::string::npos) << says << "\n" << text;
  }
  EXPECT_EQ(nlohmann::json::parse(ReportJson(data, {}))["profiling"]["on"], false);
}

TEST(ReportViewTest, AClockOffsetBelowItsErrorIsNoNumber) {
  ReportData data = SomeTrial();
  data.metrics.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    auto& series = data.metrics[i];
    series.mutable_key()->set_metric_group("agent");
    series.mutable_key()->set_name(i == 0 ? "clock_offset" : "clock_offset_error");
    series.mutable_key()->clear_labels();
    series.set_unit("seconds");
    series.set_mins(0, i == 0 ? -0.02 : 0.005);
    series.set_means(0, i == 0 ? 0.004 : 0.006);
    series.set_maxs(0, i == 0 ? 0.004 : 0.007);
    series.set_lasts(0, i == 0 ? 0.009 : 0.007);
  }
  const std::string text = ReportText(data, {}, kPlain);
  const std::size_t at = text.find("clock_offset ");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string line = text.substr(at, text.find('\n', at) - at);
  for (const char* cell : {" -20.0 ms", " <6.00 ms", " <7.00 ms", " 9.00 ms"}) {
    EXPECT_NE(line.find(cell), std::string::npos) << cell << " in " << line;
  }
}

TEST(ReportViewTest, HostileNamesMoveNoCursor) {
  ReportData data = SomeTrial();
  data.trial.set_external_id("a\033[2Jb\n");
  data.metrics[0].mutable_key()->set_name("x\ry");
  const std::string text = ReportText(data, {}, kPlain);
  EXPECT_EQ(text.find('\033'), std::string::npos);
  EXPECT_NE(text.find("a\\x1b[2Jb\\x0a"), std::string::npos);
  EXPECT_NE(text.find("x\\x0dy"), std::string::npos);
}

TEST(ReportViewTest, NanAndInfinityAreStringsInJson) {
  ReportData data = SomeTrial();
  data.metrics[0].set_mins(0, -std::numeric_limits<double>::infinity());
  data.metrics[0].set_means(0, std::nan(""));
  const auto json = nlohmann::json::parse(ReportJson(data, {}));
  EXPECT_EQ(json["metrics"][0]["min"], "-Infinity");
  EXPECT_EQ(json["metrics"][0]["mean"], "NaN");
}

TEST(ReportViewTest, NamesTheRanksThatThereAre) {
  ReportData data;
  EXPECT_EQ(KnownRanksText(data), "it has none of any rank");
  AddTiming(data, "step", 3, 1, 1);
  AddTiming(data, "train_batch", 3, 1, 1);
  EXPECT_EQ(KnownRanksText(data), "it has those of rank 3");
  for (const int rank : {0, 1, 2, 7, 9, 10}) AddTiming(data, "step", rank, 1, 1);
  EXPECT_EQ(KnownRanksText(data), "it has those of ranks 0 to 3, 7, 9 to 10");
  for (int rank = 20; rank < 40; rank += 2) AddTiming(data, "step", rank, 1, 1);
  EXPECT_EQ(KnownRanksText(data),
            "it has those of ranks 0 to 3, 7, 9 to 10, 20, 22, 24, 26, 28, ...");
}

}  // namespace
}  // namespace stepwell::cli
