#include "client/agent/live_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LiveTrialTest : public ::testing::Test {
 protected:
  void Add(int rank, int opened_us, const std::string& attempt_key, bool samples, int batch) {
    WriterIdentity& who = all_.emplace_back();
    who.rank = rank;
    who.opened_time_us = opened_us;
    who.attempt_key = attempt_key;
    who.sampling.on = samples;
    live_.Add({&who, batch});
  }
  static std::string Shown(const WriterIdentity* who) {
    return who == nullptr ? "none" : std::to_string(who->rank);
  }
  std::deque<WriterIdentity> all_;
  LiveTrial live_;
};

TEST_F(LiveTrialTest, NobodyWantsNothing) {
  EXPECT_TRUE(live_.empty());
  EXPECT_EQ(Shown(live_.NewestThatSamples()), "none");
  EXPECT_EQ(Shown(live_.NewestOfAttempt()), "none");
  EXPECT_EQ(live_.LowestRanksBatch(""), -1);
}

TEST_F(LiveTrialTest, TheNewestThatWantsItDecides) {
  Add(0, 100, "a", true, 1);
  Add(1, 300, "b", false, 2);
  Add(2, 200, "", true, 3);
  EXPECT_EQ(Shown(live_.NewestThatSamples()), "2");
  EXPECT_EQ(Shown(live_.NewestOfAttempt()), "1");
}

TEST_F(LiveTrialTest, TheBatchIsOfTheLowestRankOfTheAttempt) {
  Add(3, 100, "old", true, 70);
  Add(5, 200, "new", true, 8);
  Add(4, 200, "new", true, 9);
  EXPECT_EQ(live_.LowestRanksBatch("new"), 9);
  EXPECT_EQ(live_.LowestRanksBatch(""), 70);
  EXPECT_EQ(live_.LowestRanksBatch("third"), -1);
}

TEST(ChooseTest, WhatTheTrialDoesNotSayIsTheAgents) {
  const auto agents =
      SensorSelection::Parse({.groups = "cpu,gpu", .without = "cpu_load_1m", .interval = "250ms"});
  ASSERT_TRUE(agents.ok()) << agents.status();
  EXPECT_EQ(Choose({}, *agents), *agents);
  const SensorSelection chosen =
      Choose({.interval_us = 50'000, .groups = {"disk"}, .with = {"cpu_util_core"}}, *agents);
  EXPECT_EQ(chosen.interval(), absl::Milliseconds(50));
  EXPECT_TRUE(chosen.Wants(metrics::kDiskIops));
  EXPECT_FALSE(chosen.Wants(metrics::kGpuUtil));
  EXPECT_FALSE(Choose({.without = {"gpu_util"}}, *agents).Wants(metrics::kGpuUtil));
  EXPECT_TRUE(Choose({.with = {"cpu_util_core"}}, *agents).Wants(metrics::kCpuUtilCore));
  // Brought to what is allowed.
  EXPECT_EQ(Choose({.interval_us = 1}, *agents).interval(), SensorSelection::kIntervalMin);
}

TEST(ChooseTest, NamesTheWordsThatNothingIsCalled) {
  EXPECT_THAT(UnknownWords({.groups = {"cpu", "gpu"}, .without = {"disk_iops"}}), IsEmpty());
  EXPECT_THAT(UnknownWords({.groups = {"cpus"}, .without = {"disk"}, .with = {"gpu_util", "x"}}),
              ElementsAre("cpus", "disk", "x"));
}

}  // namespace
}  // namespace stepwell::agent
