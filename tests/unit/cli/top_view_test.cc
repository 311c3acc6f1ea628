#include "client/cli/top_view.h"

#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/unit/cli/golden.h"

namespace stepwell::cli {
namespace {

constexpr std::int64_t kNowUs = 1'763'632'882'000'000;

// A saw of ten buckets' period, between 0 and `high`; the first quarter is not there yet.
std::vector<double> Saw(double high) {
  std::vector<double> values(kTopBuckets, NAN);
  for (int i = kTopBuckets / 4; i < kTopBuckets; ++i) {
    values[static_cast<std::size_t>(i)] = high * (i % 10) / 10;
  }
  return values;
}

TopMetric Metric(const char* group, const char* name, const char* unit, double value,
                 std::map<std::string, std::string> labels, double high) {
  labels["agent"] = "node-7";
  return {group, name, unit, std::move(labels), value, kNowUs - 200'000, Saw(high)};
}

std::vector<TopMetric> Metrics() {
  const std::map<std::string, std::string> first = {{"device", "GPU-1a2b3c4d-0001"}};
  const std::map<std::string, std::string> second = {{"device", "GPU-1a2b3c4d-0002"}};
  constexpr double kGiB = 0x1p30;
  return {
      Metric("cpu", "cpu_load_1m", "1", 3.25, {}, 4),
      Metric("cpu", "cpu_util_process", "percent", 180, {{"rank", "0"}}, 200),
      Metric("cpu", "cpu_util_process", "percent", 175, {{"rank", "1"}}, 200),
      Metric("cpu", "cpu_util_simple", "percent", 42.5, {}, 50),
      Metric("disk", "disk_throughput_read", "bytes/s", 250 * 0x1p20, {}, 300 * 0x1p20),
      Metric("disk", "disk_util", "percent", 97.5, {{"mount", "/"}}, 97.5),
      Metric("disk", "disk_util", "percent", 12, {{"mount", "/data"}}, 12),
      Metric("gpu", "gpu_total_memory", "bytes", 80 * kGiB, first, 80 * kGiB),
      Metric("gpu", "gpu_total_memory", "bytes", 80 * kGiB, second, 80 * kGiB),
      Metric("gpu", "gpu_used_memory", "bytes", 60 * kGiB, first, 60 * kGiB),
      Metric("gpu", "gpu_used_memory", "bytes", 70 * kGiB, second, 70 * kGiB),
      Metric("gpu", "gpu_util", "percent", 93, first, 100),
      Metric("gpu", "gpu_util", "percent", 0, second, 0),
      Metric("memory", "memory_total", "bytes", 256 * kGiB, {}, 256 * kGiB),
      Metric("memory", "memory_used", "bytes", 64 * kGiB, {}, 128 * kGiB),
      Metric("training", "loss", "", 2.0625, {{"rank", "0"}}, 4),
      Metric("training", "learning_rate", "", NAN, {{"rank", "0"}}, 0.001),
  };
}

void AddTiming(const char* name, int rank, double share, double mean,
               v1::SummarizeTimingsResponse& timings) {
  auto& timing = *timings.add_timings();
  timing.set_name(name);
  timing.set_rank(rank);
  timing.set_in_step(true);
  timing.set_steps(120);
  timing.set_count(120);
  timing.set_share(share);
  timing.set_mean_seconds(mean);
  timing.set_p95_seconds(mean * 1.25);
}

TopData Data() {
  TopData data;
  TopTrial& top = data.trials.emplace_back();
  top.trial.set_trial_id(7);
  top.trial.set_project("vision");
  top.trial.set_external_id("resnet50-a");
  top.trial.set_state(v1::TRIAL_STATE_RUNNING);
  top.trial.set_last_sample_time_us(kNowUs - 200'000);
  top.batch = 12'345;
  top.is_recent = true;
  for (int rank = 0; rank < 2; ++rank) {
    auto& summary = *top.timings.add_ranks();
    summary.set_rank(rank);
    summary.set_steps(120);
    summary.set_step_seconds(60 + rank);
    summary.set_unaccounted_seconds(1.2);
    summary.set_unaccounted_share(0.02);
    AddTiming("step", rank, 0, 0.5, top.timings);
    AddTiming("dataloader_next", rank, 0.28, 0.14, top.timings);
    AddTiming("train_batch/forward", rank, 0.6, 0.3, top.timings);
    AddTiming("train_batch/backward/all_reduce_of_gradients", rank, 0.1, 0.05, top.timings);
  }
  data.metrics = Metrics();
  data.answered_time_us = kNowUs;
  return data;
}

std::string Frame(const TopData& data, const TopLook& look, const TopOutage& outage = {}) {
  return absl::StrJoin(TopFrame(data, outage, look), "\n") + "\n";
}

TEST(TopViewTest, ShowsATrialAtEachWidth) {
  for (const int columns : {40, 60, 80, 132}) {
    TopLook look;
    look.columns = columns;
    ExpectGolden(absl::StrCat("top_", columns, ".txt"), Frame(Data(), look));
  }
}

TEST(TopViewTest, SaysThatATrialEndedAndThatItsRecordingIsOff) {
  TopData data = Data();
  data.trials.front().trial.set_state(v1::TRIAL_STATE_COMPLETED);
  data.trials.front().profiling.set_on(false);
  data.answered_time_us = kNowUs + 3'600'000'000;
  const std::string frame = Frame(data, TopLook());
  for (const char* says : {"completed", "ended 10:01:21 UTC\n", "\nby request, recording is off\n",
                           "Share of the step  last 60 s before its end"}) {
    EXPECT_NE(frame.find(says), std::string::npos) << says << "\n" << frame;
  }
}

TEST(TopViewTest, ShowsAllMetricsInColourAndInAscii) {
  TopLook look;
  look.all_metrics = true;
  look.paint = Paint(Colours::kOn);
  ExpectGolden("top_all_colour.txt", Frame(Data(), look));
  look.paint = Paint(Colours::kOff);
  look.charset = Charset::kAscii;
  const std::string ascii = Frame(Data(), look);
  ExpectGolden("top_all_ascii.txt", ascii);
  for (const char c : ascii) EXPECT_TRUE(c == '\n' || (c >= 0x20 && c < 0x7f)) << ascii;
}

TEST(TopViewTest, ShowsAMachine) {
  TopData data = Data();
  data.machine = "node-7";
  data.trials.push_back(data.trials.front());
  data.trials.back().trial.set_external_id("bert");
  data.trials.back().timings.Clear();
  data.trials.back().batch = -1;
  ExpectGolden("top_machine.txt", Frame(data, {}));
}

TEST(TopViewTest, NoLineIsWiderThanTheScreenWhateverItShows) {
  TopData data = Data();
  data.trials.front().trial.set_external_id(std::string(200, 'x') + "学习率");
  data.metrics.front().name = std::string(100, 'n');
  data.metrics.front().group = "训练";
  data.metrics[2].labels["mount"] = "/学习/\033[2J";
  data.metrics.back().value = -1.7e308;
  data.metrics.back().unit = std::string(60, 'u');
  const TopOutage outage{kNowUs, std::string(300, 'e') + "\n\033[1m"};
  for (int columns = 40; columns <= 220; columns += 7) {
    for (const Charset charset : {Charset::kAscii, Charset::kUtf8}) {
      TopLook look;
      look.columns = columns;
      look.charset = charset;
      look.all_metrics = true;
      for (const std::string& line : TopFrame(data, outage, look)) {
        EXPECT_LE(ColumnsOf(line), columns) << line;
        EXPECT_EQ(line.find_first_of("\033\n\r"), std::string::npos) << line;
      }
    }
  }
}

// A time in nanoseconds, or a loss that overflowed.
TEST(TopViewTest, LargeNumbersHaveSparklinesToo) {
  TopData data = Data();
  for (const auto& history :
       {std::vector<double>(9, 1.7e18), std::vector<double>{-1.7e308, 0, 1.7e308}}) {
    data.metrics.back().history = history;
    TopLook look;
    look.columns = 120;
    EXPECT_NE(Frame(data, look).find("learning_rate"), std::string::npos);
  }
}

TEST(TopViewTest, ShowsAWindowThatMovesOverWhatDoesNotFit) {
  const TopLook look;
  std::vector<std::string> all;
  for (int i = 0; i < 30; ++i) all.push_back(absl::StrCat("line ", i));
  const struct {
    const char* name;
    int rows;
    int skip;
    int skip_left;
    std::string first, second, last;
  } rows[] = {
      {"all of it", 30, 0, 0, "line 0", "line 1", "line 29"},
      {"room for more", 40, 7, 0, "line 0", "line 1", "line 29"},
      {"its beginning", 10, 0, 0, "line 0", "line 1", "21 more lines below"},
      {"above that", 10, -5, 0, "line 0", "line 1", "21 more lines below"},
      {"further down", 10, 4, 4, "line 0", "line 5", "4 more lines above, 17 below"},
      {"its end", 10, 21, 21, "line 0", "line 22", "21 more lines above"},
      {"beyond it", 10, 99, 21, "line 0", "line 22", "21 more lines above"},
      {"two rows", 2, 0, 0, "line 0", "29 more lines below", "29 more lines below"},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    int skip = row.skip;
    const std::vector<std::string> window = TopWindow(all, row.rows, look, skip);
    EXPECT_EQ(window.size(), static_cast<std::size_t>(std::min(row.rows, 30)));
    EXPECT_EQ(skip, row.skip_left);
    EXPECT_EQ(window.front(), row.first);
    EXPECT_EQ(window[1], row.second);
    EXPECT_EQ(window.back(), row.last);
  }
  int skip = 3;
  EXPECT_EQ(TopWindow(all, 1, look, skip), std::vector<std::string>{"line 0"});
}

TEST(TopViewTest, AWideScreenDoesNotTearLinesApart) {
  const TopLook wide{.columns = 220};
  const TopLook look{.columns = 132};
  EXPECT_EQ(Frame(Data(), wide), Frame(Data(), look));
}

TEST(TopViewTest, WarnsWhereItsNumbersAreOld) {
  TopData data = Data();
  EXPECT_NE(TopFrame(data, {kNowUs - 30'000'000, "the connection was refused"}, {})[1].find(
                "no answer since 10:00:52 UTC: the connection was refused"),
            std::string::npos)
      << Frame(data, {}, {kNowUs - 30'000'000, "the connection was refused"});
  data.answered_time_us += 60'000'000;
  EXPECT_EQ(TopFrame(data, {}, {})[1], "no sample for 60.2 s");
  data.trials.front().trial.set_state(v1::TRIAL_STATE_COMPLETED);
  EXPECT_EQ(TopFrame(data, {}, {})[1].find("no sample"), std::string::npos)
      << "one that ended has none, rightly";
}

// The line of a frame that begins so; empty = there is none.
std::string LineOf(const std::string& beginning, const TopData& data, const TopLook& look) {
  for (const std::string& line : TopFrame(data, {}, look)) {
    if (line.find(beginning) == 2) return line;
  }
  return {};
}

TEST(TopViewTest, WhatIsNotSampledAnyMoreShowsItsAgeAndNoValue) {
  constexpr std::int64_t kSecondUs = 1'000'000;
  const struct {
    const char* name;
    std::int64_t age_us;
    std::int64_t interval_us;
    const char* shows;
  } rows[] = {
      {"lost", 42 * kSecondUs, kSecondUs, "no sample for 42.0 s"},
      {"a little late", 10 * kSecondUs, kSecondUs, "93.0 %"},
      {"slow", 30 * kSecondUs, 15 * kSecondUs, "93.0 %"},
      {"slow and lost", 31 * kSecondUs, 15 * kSecondUs, "no sample for 31.0 s"},
      {"of an interval that is not known", 20 * kSecondUs, 0, "93.0 %"},
      {"lost before it was known", 21 * kSecondUs, 0, "no sample for 21.0 s"},
  };
  const TopLook look;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    TopData data = Data();
    for (TopMetric& metric : data.metrics) {
      // What a trial records itself may be rare.
      if (metric.name == "loss") metric.time_us -= row.age_us;
      if (metric.name != "gpu_util") continue;
      metric.time_us -= row.age_us;
      metric.interval_us = row.interval_us;
    }
    const std::string line = LineOf("gpu_util GPU-1a2b3c4d-0001", data, look);
    EXPECT_NE(line.find(row.shows), std::string::npos) << line;
    const bool is_dead = std::string(row.shows).find("no sample") == 0;
    EXPECT_EQ(line.find("93.0 %") == std::string::npos, is_dead) << line;
    EXPECT_EQ(line.find("█") == std::string::npos, is_dead) << line;
    EXPECT_EQ(line.find(" - ") != std::string::npos, is_dead) << line;
    EXPECT_NE(LineOf("gpu_used_memory", data, look).find("60.0 GiB"), std::string::npos);
    EXPECT_NE(LineOf("loss", data, look).find("2.062"), std::string::npos);
    TopLook narrow;
    narrow.columns = 40;
    const std::string age = std::string(row.shows).substr(is_dead ? 14 : 0);
    const std::string short_line = LineOf("gpu_util", data, narrow);
    EXPECT_NE(short_line.find(age), std::string::npos) << short_line;
  }
}

TEST(TopViewTest, ATrialWithoutAnything) {
  TopData data;
  data.trials.emplace_back().trial.set_trial_id(9);
  data.answered_time_us = kNowUs;
  EXPECT_EQ(Frame(data, {}),
            absl::StrCat("trial 9  unknown", std::string(52, ' '), "10:01:22 UTC\nno step yet\n"));
}

TEST(TopViewTest, OfManyRanksAndGpusItShowsTheFirstAndTheMost) {
  TopData data = Data();
  for (int i = 2; i < 12; ++i) {
    data.metrics.push_back(Metric("training", "loss", "", i, {{"rank", absl::StrCat(i)}}, 4));
    const std::map<std::string, std::string> device = {{"device", absl::StrCat("GPU-", i)}};
    data.metrics.push_back(Metric("gpu", "gpu_util", "percent", i, device, 100));
    data.metrics.push_back(Metric("gpu", "gpu_power", "watts", 300, device, 100));
  }
  std::string frame = Frame(data, {});
  EXPECT_NE(frame.find("Training, 4 of 11 ranks"), std::string::npos) << frame;
  EXPECT_NE(frame.find("loss rank=4"), std::string::npos) << frame;
  EXPECT_EQ(frame.find("loss rank=5"), std::string::npos) << frame;
  EXPECT_EQ(frame.find("gpu_power"), std::string::npos) << frame;
  frame = Frame(data, {.all_metrics = true});
  EXPECT_NE(frame.find("loss rank=11"), std::string::npos) << frame;
  EXPECT_NE(frame.find("gpu_power"), std::string::npos) << frame;
}

TEST(TopViewTest, OfManyScopesTheSmallAreSummed) {
  TopData data = Data();
  for (int i = 0; i < 40; ++i) {
    AddTiming(absl::StrCat("scope", i).c_str(), 0, 0.0005, 0.00025, data.trials.front().timings);
  }
  const std::string frame = Frame(data, {});
  EXPECT_NE(frame.find("31 more scopes"), std::string::npos) << frame;
  // 31 of 0.05 %.
  EXPECT_NE(frame.find("31 more scopes                      1.6 %"), std::string::npos) << frame;
}

}  // namespace
}  // namespace stepwell::cli
