#include "server/profiling_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace stepwell {
namespace {

using Request = pb::SetProfilingRequest;

TEST(ProfilingCheckTest, SaysWhichFieldIsWrongAndWhatIsAllowed) {
  struct Row {
    const char* name;
    std::function<void(Request&)> change;
    const char* reason;  // empty: taken
    const char* message;
  };
  const std::vector<Row> rows = {
      {"nothing but the trial", [](Request&) {}, "", ""},
      {"the least interval", [](Request& r) { r.set_interval_us(10'000); }, "", ""},
      {"the greatest interval", [](Request& r) { r.set_interval_us(3'600'000'000); }, "", ""},
      {"below", [](Request& r) { r.set_interval_us(9'999); }, "INTERVAL_RANGE",
       "interval_us is 9999; allowed: 0 (what the trial chose), 10000 ... 3600000000"},
      {"above", [](Request& r) { r.set_interval_us(3'600'000'001); }, "INTERVAL_RANGE",
       "interval_us is 3600000001; allowed: 0 (what the trial chose), 10000 ... 3600000000"},
      {"negative", [](Request& r) { r.set_interval_us(-1); }, "INTERVAL_RANGE",
       "interval_us is -1; allowed: 0 (what the trial chose), 10000 ... 3600000000"},
      {"no trial", [](Request& r) { r.clear_trial(); }, "TRIAL_REF",
       "trial is missing; allowed: trial_id, or external_id with project"},
      {"both names", [](Request& r) { r.mutable_trial()->set_trial_id(3); }, "TRIAL_REF",
       "trial has both trial_id and external_id; allowed: one of them"},
      {"an empty group", [](Request& r) { r.add_metric_groups(""); }, "METRIC_GROUP_BYTES",
       "metric_groups[0] has 0 bytes, allowed are 1 to 128"},
      {"a long group", [](Request& r) { r.add_metric_groups(std::string(129, 'g')); },
       "METRIC_GROUP_BYTES", "metric_groups[0] has 129 bytes, allowed are 1 to 128"},
      {"a line break",
       [](Request& r) {
         r.add_metric_groups("cpu");
         r.add_metric_groups("a\nb");
       },
       "CONTROL_CHARACTER",
       "metric_groups[1] has a control character at byte 1; allowed is UTF-8 text without control"
       " characters"},
      {"32 groups",
       [](Request& r) {
         for (int i = 0; i < 32; ++i)
           r.add_metric_groups(std::string(1, static_cast<char>('A' + i)));
       },
       "", ""},
      {"33 groups",
       [](Request& r) {
         for (int i = 0; i < 33; ++i) r.add_metric_groups("cpu");
       },
       "METRIC_GROUP_COUNT", "metric_groups has 33 entries; allowed: 0 (all) ... 32"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    Request request;
    request.mutable_trial()->set_external_id("my-run");
    row.change(request);
    TrialSelector trial;
    TrialProfiling wanted;
    const MaybeComplaint complaint = CheckSetProfiling(request, trial, wanted);
    ASSERT_EQ(complaint.has_value(), *row.reason != '\0');
    if (!complaint) continue;
    EXPECT_EQ(complaint->reason, row.reason);
    EXPECT_EQ(complaint->message, row.message);
  }
}

TEST(ProfilingCheckTest, TakesGroupsOnceAndInOrder) {
  Request request;
  request.mutable_trial()->set_external_id("my-run");
  request.set_on(true);
  request.set_interval_us(100'000);
  for (const char* group : {"gpu", "cpu", "gpu"}) request.add_metric_groups(group);
  TrialSelector trial;
  TrialProfiling wanted;
  ASSERT_FALSE(CheckSetProfiling(request, trial, wanted).has_value());
  EXPECT_EQ(trial.external_id, "my-run");
  EXPECT_EQ(trial.project, "default");
  EXPECT_EQ(wanted,
            (TrialProfiling{.on = true, .interval_us = 100'000, .metric_groups = {"cpu", "gpu"}}));
}

}  // namespace
}  // namespace stepwell
