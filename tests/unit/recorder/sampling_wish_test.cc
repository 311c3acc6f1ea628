#include "client/recorder/src/sampling_wish.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace stepwell::recorder {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Resolved {
  SamplingWish wish;
  std::vector<std::string> remarks;
};

Resolved Resolve(SamplingWish wish, const std::map<std::string, std::string>& variables) {
  Resolved resolved;
  resolved.wish = ResolveSampling(
      std::move(wish),
      [&variables](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      resolved.remarks);
  return resolved;
}

TEST(SamplingWishTest, ReadsIntervals) {
  const struct {
    const char* text;
    std::int64_t us;
  } rows[] = {
      {"1s", 1'000'000}, {"250ms", 250'000},    {"10000us", 10'000},
      {"0.5", 500'000},  {"1.5s", 1'500'000},   {"2m", 120'000'000},
      {"10ms", 10'000},  {"1h", 3'600'000'000}, {"3600", 3'600'000'000},
      {"", -1},          {"soon", -1},          {"1 s", -1},
      {"0", -1},         {"-1s", -1},           {"9.9ms", -1},
      {"61m", -1},       {"nan", -1},           {"inf", -1},
      {"1e300s", -1},    {"1,5s", -1},          {"5d", -1},
      {"1ss", -1},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.text);
    EXPECT_EQ(ParseIntervalUs(row.text), row.us);
  }
}

TEST(SamplingWishTest, ListsAreWordsBetweenCommas) {
  EXPECT_THAT(SplitWords(""), IsEmpty());
  EXPECT_THAT(SplitWords(" , ,"), IsEmpty());
  EXPECT_THAT(SplitWords("gpu"), ElementsAre("gpu"));
  // Words that nobody knows are the agent's to pass over.
  EXPECT_THAT(SplitWords(" cpu,,gpu util ,\tx\n"), ElementsAre("cpu", "gpu util", "x"));
}

TEST(SamplingWishTest, WhatIsLeftOpenComesFromTheEnvironment) {
  const std::map<std::string, std::string> variables = {{"STEPWELL_INTERVAL", "100ms"},
                                                        {"STEPWELL_GROUPS", "cpu,gpu"},
                                                        {"STEPWELL_WITHOUT", "gpu_power"},
                                                        {"STEPWELL_WITH", "cpu_util_core"}};
  const SamplingWish taken = Resolve({}, variables).wish;
  EXPECT_EQ(taken, (SamplingWish{.is_on = true,
                                 .interval_us = 100'000,
                                 .groups = {"cpu", "gpu"},
                                 .without = {"gpu_power"},
                                 .with = {"cpu_util_core"}}));
  const SamplingWish wish{
      .interval_us = 20'000, .groups = {"memory"}, .without = {"a"}, .with = {"b"}};
  EXPECT_EQ(Resolve(wish, variables).wish, wish);
  EXPECT_EQ(Resolve({}, {}).wish, SamplingWish());
}

TEST(SamplingWishTest, NamesThatNoSensorHasAreToldAndKept) {
  const Resolved resolved = Resolve({.without = {"gpu_powr"}},
                                    {{"STEPWELL_GROUPS", "cpu,gpux"}, {"STEPWELL_WITH", "cores"}});
  EXPECT_THAT(resolved.wish.groups, ElementsAre("cpu", "gpux"));
  EXPECT_THAT(
      resolved.remarks,
      ElementsAre(
          "STEPWELL_GROUPS (or options.groups) names 'gpux': it must be of cpu, disk, gpu, "
          "memory, network",
          "STEPWELL_WITHOUT (or options.without) names 'gpu_powr': it must be a system metric "
          "(docs/metrics.md lists them)",
          "STEPWELL_WITH (or options.with) names 'cores': it must be a system metric "
          "(docs/metrics.md lists them)"));
}

TEST(SamplingWishTest, SystemMetricsAreSwitchedOffByEither) {
  EXPECT_TRUE(Resolve({}, {}).wish.is_on);
  EXPECT_TRUE(Resolve({}, {{"STEPWELL_SYSTEM_METRICS", "1"}}).wish.is_on);
  EXPECT_FALSE(Resolve({}, {{"STEPWELL_SYSTEM_METRICS", "0"}}).wish.is_on);
  EXPECT_FALSE(Resolve({.is_on = false}, {{"STEPWELL_SYSTEM_METRICS", "1"}}).wish.is_on);
}

TEST(SamplingWishTest, AnIntervalThatCannotBeIsToldAndTheDefaultIsTaken) {
  const Resolved variable = Resolve({}, {{"STEPWELL_INTERVAL", "fast"}});
  EXPECT_EQ(variable.wish.interval_us, 0);
  EXPECT_THAT(
      variable.remarks,
      ElementsAre("STEPWELL_INTERVAL is 'fast': it must be a duration like 250ms, from 10ms "
                  "to 1h; the agent's default is taken"));
  const Resolved option = Resolve({.interval_us = 9'999}, {{"STEPWELL_INTERVAL", "1s"}});
  EXPECT_EQ(option.wish.interval_us, 0);
  EXPECT_THAT(option.remarks,
              ElementsAre("options.interval_us is 9999: it must be 0 (the agent's default, now "
                          "taken) or 10000 ... 3600000000"));
}

TEST(SamplingWishTest, IsWrittenAsJson) {
  const SamplingWish wish{.is_on = false,
                          .interval_us = 250'000,
                          .groups = {"cpu", "a\"b"},
                          .without = {"x"},
                          .with = {}};
  EXPECT_EQ(ToJson(wish),
            "{\"on\": false, \"interval_us\": 250000, \"groups\": [\"cpu\", \"a\\\"b\"], "
            "\"without\": [\"x\"], \"with\": []}");
}

}  // namespace
}  // namespace stepwell::recorder
