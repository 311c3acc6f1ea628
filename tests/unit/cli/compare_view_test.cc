#include "client/cli/compare_view.h"

#include <gtest/gtest.h>

#include <cstdint>

#include "nlohmann/json.hpp"
#include "tests/unit/cli/compare_maker.h"
#include "tests/unit/cli/golden.h"

namespace stepwell::cli {
namespace {

const Paint kPlain(Colours::kOff);

// Columns of the answer's series, for as many trials as there are.
CompareMaker SomeTrials(const std::vector<std::string>& names) {
  CompareMaker maker(names);
  const auto of = [&](std::vector<std::optional<double>> means) {
    means.resize(names.size());
    return means;
  };
  maker.Add("cpu", "cpu_util_simple", "percent", of({88.4, 91.6, 64.0}), 917);
  maker.Add("disk", "disk_throughput_read", "bytes/s", of({52'428'800.0, 0.0, 10.0}), 917);
  maker.Add("gpu", "gpu_util", "percent", of({std::nullopt, 71.2, 12.0}), 917);
  maker.Add("memory", "memory_free", "bytes", of({5.9e9, 5.9e9, 6.1e9}), 917);
  maker.AddTiming("dataloader_next", of({0.0152, 0.0029, 0.0152}));
  maker.AddTiming("step", of({0.0762, 0.0766, 0.0762}));
  maker.AddTiming("to_device", of({0.0021, 0.0021, 0.0019}));
  maker.AddTiming("train_batch", of({0.0562, 0.0563, 0.0562}));
  maker.AddTiming("train_batch/backward", of({0.0344, 0.0345, 0.0344}));
  maker.AddTiming("train_batch/backward", of({0.0331, 0.0330, 0.0331}), 1200,
                  {{"clock", "device"}});
  maker.AddTiming("train_batch/forward", of({0.020, 0.020, 0.020}));
  maker.AddTiming("validate", of({std::nullopt, 1.25, std::nullopt}), 12);
  maker.Add("timing", "write", "", of({0.5, 480.0, 0.25}), 6, {}, {"seconds", "ms", "seconds"});
  maker.Add("training", "grad_norm", "", of({0.0, 1.5, 1.5}));
  maker.Add("training", "loss", "nats", of({2.914, 2.7, 2.914}), 1200, {{"split", "train"}});
  maker.Add("training", "tokens_per_second", "", of({13'441.0, 15.9, 13'900.0}), 1200, {},
            {"1/s", "tokens/ms", "1/s"});
  return maker;
}

TEST(CompareViewTest, TwoTrialsStandSideBySide) {
  CompareMaker maker = SomeTrials({"baseline", "faster-loader"});
  maker.data().rank_counts[1] = 4;
  ExpectGolden("compare.txt", CompareText(maker.data(), 20, kPlain));
  ExpectGolden("compare_colour.txt", CompareText(maker.data(), 20, Paint(Colours::kOn)));
  ExpectGolden("compare.json", CompareJson(maker.data()));
}

TEST(CompareViewTest, MoreTrialsStandBelowEachOther) {
  CompareMaker maker = SomeTrials({"baseline", "faster-loader", "other\x1bproject"});
  maker.data().answer.mutable_trials(2)->mutable_trial()->set_state(v1::TRIAL_STATE_LOST);
  v1::Completeness& lost = *maker.data().answer.mutable_trials(2)->mutable_completeness();
  lost.set_contiguous(false);
  lost.set_samples_missing(1'200);
  v1::Gap& gap = *lost.add_gaps();
  gap.set_cause(v1::GAP_CAUSE_RING_FULL);
  gap.set_sample_count(1'200);
  ExpectGolden("compare_three.txt", CompareText(maker.data(), 20, kPlain));
}

TEST(CompareViewTest, ALimitLeavesWhatChangedMost) {
  CompareMaker maker = SomeTrials({"baseline", "faster-loader"});
  ExpectGolden("compare_limit.txt", CompareText(maker.data(), 2, kPlain));
}

TEST(CompareViewTest, ByTimeThereAreNoShares) {
  CompareMaker maker = SomeTrials({"baseline", "faster-loader"});
  maker.data().axis = v1::COMPARE_AXIS_TIME_SINCE_START;
  maker.data().answer.set_start(10'000'000);
  maker.data().answer.set_width(81'700'001);
  ExpectGolden("compare_time.txt", CompareText(maker.data(), 20, kPlain));
}

TEST(CompareViewTest, NothingToCompareIsSaid) {
  CompareMaker maker({"a", "b"});
  v1::Trial& empty = *maker.data().answer.mutable_trials(1)->mutable_trial();
  empty.clear_external_id();
  empty.set_first_sample_time_us(0);
  empty.set_sample_count(0);
  const std::string text = CompareText(maker.data(), 20, kPlain);
  EXPECT_EQ(text,
            "   trial             state      steps  samples  length\n"
            "A  a                 completed      -  123,456  91.7 s\n"
            "B  trial 1000000002  completed      -        0       -\n"
            "\n"
            "A  Complete: all 123,456 samples that were sent are here.\n"
            "B  Complete: all 123,456 samples that were sent are here.\n");
}

}  // namespace
}  // namespace stepwell::cli
