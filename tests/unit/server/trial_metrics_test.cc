#include "server/trial_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kNowUs = 1'700'000'000'000'000;

class TrialMetricsTest : public ::testing::Test {
 protected:
  static v1::Trial Trial(std::int64_t trial_id, const std::string& name) {
    v1::Trial trial;
    trial.set_trial_id(trial_id);
    trial.set_project("default");
    trial.set_external_id(name);
    return trial;
  }
  v1::LatestValuesResponse::Value& Add(const std::string& group, const std::string& name,
                                       const std::string& unit, double value,
                                       const std::map<std::string, std::string>& labels = {}) {
    latest_.mutable_completeness()->set_answered_time_us(kNowUs);
    auto& added = *latest_.add_values();
    added.set_time_us(kNowUs - 1'000'000);
    added.set_value(value);
    auto& series = *added.mutable_series();
    series.mutable_key()->set_metric_group(group);
    series.mutable_key()->set_name(name);
    series.set_unit(unit);
    (*series.mutable_key()->mutable_labels())["agent"] = "node-1";
    for (const auto& [label, text] : labels)
      (*series.mutable_key()->mutable_labels())[label] = text;
    return added;
  }
  std::string Text() {
    metrics_.Add(Trial(7, "resnet"), latest_);
    metrics_.Finish();
    return families_.Text();
  }

  MetricFamilies families_;
  TrialMetrics metrics_{families_, {.values_max = 9}};
  v1::LatestValuesResponse latest_;
};

TEST_F(TrialMetricsTest, NamesHaveBaseUnitsAndLabelsSayWhose) {
  Add("gpu", "gpu_util", "percent", 97, {{"device", "GPU-1"}});
  Add("gpu", "gpu_energy", "joules", 5e6, {{"device", "GPU-1"}})
      .mutable_series()
      ->set_kind(v1::SERIES_KIND_COUNTER);
  Add("network", "net_interface_sent", "bytes/s", 1000, {{"interface", "eth0"}});
  Add("disk", "disk_iops", "1/s", 12.5);
  Add("cpu", "cpu_load_1m", "1", 3);
  Add("agent", "clock_offset", "seconds", -0.5);
  const std::string text = Text();
  const std::string whose = "{project=\"default\",trial=\"resnet\",agent=\"node-1\"";
  for (const std::string& line : std::vector<std::string>{
           "stepwell_trial_gpu_util_ratio" + whose + ",gpu_uuid=\"GPU-1\"} 0.97\n",
           "# TYPE stepwell_trial_gpu_energy_joules_total "
           "counter\nstepwell_trial_gpu_energy_joules_total" +
               whose + ",gpu_uuid=\"GPU-1\"} 5000000\n",
           "stepwell_trial_net_interface_sent_bytes_per_second" + whose +
               ",interface=\"eth0\"} 1000\n",
           "stepwell_trial_disk_iops_per_second" + whose + "} 12.5\n",
           "stepwell_trial_cpu_load_1m" + whose + "} 3\n",
           "stepwell_trial_agent_clock_offset_seconds" + whose + "} -0.5\n",
           "# TYPE stepwell_trial_disk_iops_per_second gauge\n",
           "stepwell_trial_info" + whose + ",gpu_uuid=\"GPU-1\"} 1\n",
           "\nstepwell_trial_metrics_complete 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

TEST_F(TrialMetricsTest, WhatIsOldOrNoMachinesIsLeftOut) {
  Add("cpu", "cpu_util_simple", "percent", 1).set_time_us(kNowUs - 301'000'000);
  Add("training", "loss", "", 0.5);
  Add("timing", "step", "seconds", 0.5);
  const std::string text = Text();
  EXPECT_THAT(text, Not(HasSubstr("cpu_util")));
  EXPECT_THAT(text, Not(HasSubstr("loss")));
  EXPECT_THAT(text, Not(HasSubstr("step\"")));
  EXPECT_THAT(text, HasSubstr("stepwell_trial_info{project=\"default\",trial=\"resnet\"} 1\n"));
}

TEST_F(TrialMetricsTest, HostileNamesStayWithinTheirLine) {
  Add("cpu", "a b\n{evil} 1", "", 1, {{"trial", "other"}, {"9x\"", "a\"\\\n"}, {"__name__", "up"}});
  Add("cpu", "info", "", 2);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("\nstepwell_trial_a_b__evil__1{project=\"default\",trial=\"resnet\","
                              "agent=\"node-1\",label_9x_=\"a\\\"\\\\\\n\",label___name__=\"up\","
                              "label_trial=\"other\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("stepwell_trial_info{project=\"default\",trial=\"resnet\","
                                  "agent=\"node-1\"} 2")));
}

TEST_F(TrialMetricsTest, ASeriesThatIsCalledAsOursIsLeftOut) {
  Add("cpu", "metrics_complete", "", 0);
  Add("cpu", "info", "", 3);
  const std::string text = Text();
  EXPECT_THAT(text, Not(HasSubstr("stepwell_trial_metrics_complete{")));
  EXPECT_THAT(text, Not(HasSubstr("} 3\n")));
  EXPECT_THAT(text, HasSubstr("\nstepwell_trial_metrics_complete 1\n"));
}

// Of two metrics one line, or lines of one name: nobody could tell them apart.
TEST_F(TrialMetricsTest, OfTwoThatBecomeOneNameTheFirstStaysAndThatIsTold) {
  Add("cpu", "x", "", 1);
  Add("disk", "x", "", 2, {{"mount", "/"}});
  Add("memory", "y z", "", 3);
  Add("memory", "y_z", "", 4);
  const std::string text = Text();
  EXPECT_THAT(
      text,
      HasSubstr("stepwell_trial_x{project=\"default\",trial=\"resnet\",agent=\"node-1\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("mount=")));
  EXPECT_THAT(
      text,
      HasSubstr("stepwell_trial_y_z{project=\"default\",trial=\"resnet\",agent=\"node-1\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("\nstepwell_trial_metrics_complete 0\n"));
}

TEST_F(TrialMetricsTest, LabelsThatBecomeOneHideNoValueInSilence) {
  Add("cpu", "x", "", 1, {{"a.b", "1"}});
  Add("cpu", "x", "", 2, {{"a b", "1"}});
  EXPECT_THAT(Text(), HasSubstr("\nstepwell_trial_metrics_complete 0\n"));
}

TEST_F(TrialMetricsTest, OneMetricOfSeveralTrialsIsNoCollision) {
  Add("cpu", "x", "", 1);
  metrics_.Add(Trial(8, "bert"), latest_);
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("trial=\"bert\",agent=\"node-1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("trial=\"resnet\",agent=\"node-1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("\nstepwell_trial_metrics_complete 1\n"));
}

TEST_F(TrialMetricsTest, BeyondTheBoundItSaysThatNotAllIsTold) {
  for (int i = 0; i < 10; ++i) {
    Add("cpu", "cpu_util_core", "percent", i, {{"core", std::to_string(i)}});
  }
  const std::string text = Text();
  EXPECT_THAT(text, HasSubstr("core=\"8\""));
  EXPECT_THAT(text, Not(HasSubstr("core=\"9\"")));
  EXPECT_THAT(text, HasSubstr("\nstepwell_trial_metrics_complete 0\n"));
}

TEST_F(TrialMetricsTest, PodAndJobStandWhereTheMachineIsSaid) {
  const auto place = [&](std::int64_t ago_us, const std::map<std::string, std::string>& where) {
    Add("agent", "placement", "1", 1, where).set_time_us(kNowUs - ago_us);
  };
  // Of an earlier attempt, and of the one that runs, in either order.
  place(9'000'000, {{"pod", "before"}, {"slurm_job", "1"}});
  place(1'000'000, {{"pod", "resnet-0"}, {"slurm_job", "4711"}, {"other", "x"}});
  place(8'000'000, {{"pod", "long-before"}});
  Add("gpu", "gpu_util", "percent", 1, {{"device", "GPU-1"}});
  const std::string text = Text();
  EXPECT_THAT(text,
              HasSubstr("stepwell_trial_info{project=\"default\",trial=\"resnet\",agent=\"node-1\","
                        "gpu_uuid=\"GPU-1\",pod=\"resnet-0\",slurm_job=\"4711\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("before")));
  EXPECT_THAT(text, Not(HasSubstr("placement")));
}

TEST_F(TrialMetricsTest, EachGpuAndContainerIsSeenWithItsTrial) {
  Add("gpu", "gpu_util", "percent", 1, {{"device", "MIG-1"}, {"parent", "GPU-1"}});
  Add("gpu", "gpu_util", "percent", 1, {{"device", "GPU-2"}});
  Add("cpu", "cpu_util_container", "percent", 1, {{"container", "0123456789ab"}});
  const std::string text = Text();
  for (const char* gpu : {"GPU-1", "GPU-2"}) {
    EXPECT_THAT(text, HasSubstr(std::string("agent=\"node-1\",gpu_uuid=\"") + gpu +
                                "\",container_id=\"0123456789ab\"} 1\n"));
  }
  EXPECT_THAT(text, HasSubstr("gpu_uuid=\"MIG-1\",parent=\"GPU-1\"} 0.01\n"));
}

}  // namespace
}  // namespace stepwell
