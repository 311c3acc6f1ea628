// What a merge takes for one time line, and for whose a trace is, where that is not plain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/trace/merge_plan.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kDayNs = std::int64_t{86'400} * 1'000'000'000;
constexpr std::int64_t kNow = 20'000 * kDayNs;

MergeInput TraceOf(std::int32_t rank, std::int64_t first_ns) {
  MergeInput input;
  input.label = absl::StrCat("rank", rank, " at ", first_ns / kDayNs);
  input.origin.rank = rank;
  input.origin.first_time_ns = first_ns;
  return input;
}

// What lies over 30 days apart: of which two inputs it is one time line.
TEST(MergeTies, WhatLiesMonthsApartIsOfOneTimeLineWhereSomethingTiesIt) {
  constexpr std::int64_t kLater = kNow + 400 * kDayNs;
  const auto of = [](std::int32_t rank, std::int64_t at, const char* machine, const char* boot_id) {
    MergeInput input = TraceOf(rank, at);
    input.origin.machine = machine;
    input.origin.boot_id = boot_id;
    return input;
  };
  const auto asked = [&](std::int32_t rank, std::int64_t at, const char* machine,
                         std::int64_t ahead) {
    MergeInput input = of(rank, at, machine, "");
    input.origin.master_clock.Take({at, ahead, 100}, "t");
    return input;
  };
  const auto synced = [&](std::int32_t rank, std::int64_t at, const char* machine,
                          std::int64_t barrier) {
    MergeInput input = of(rank, at, machine, "");
    input.origin.sync_time_ns = barrier;
    input.cycle = barrier == at && at == kLater ? "ep0-ba8" : "ep0-ba7";
    return input;
  };
  const auto shifted = [](MergeInput input, std::int64_t by) {
    input.shift_ns = by;
    return input;
  };
  constexpr std::int64_t kUptime = 3 * kDayNs;
  const struct {
    const char* what;
    std::vector<MergeInput> inputs;
    bool is_refused;
  } rows[] = {
      {"one rank", {of(0, kNow, "", ""), of(0, kLater, "", "")}, false},
      {"one machine", {of(0, kNow, "a", ""), of(1, kLater, "a", "")}, false},
      {"one kernel", {of(0, kNow, "a", "k"), of(1, kLater, "b", "k")}, false},
      {"two ranks", {of(0, kNow, "", ""), of(1, kLater, "", "")}, true},
      {"two machines", {of(0, kNow, "a", ""), of(1, kLater, "b", "")}, true},
      {"one rank on two machines", {of(0, kNow, "a", ""), of(0, kLater, "b", "")}, true},
      {"one rank, of which nothing tells on which of two machines",
       {of(0, kNow, "a", ""), of(0, kNow, "b", ""), of(0, kLater, "", "")},
       true},
      {"a third between them",
       {of(0, kNow, "", ""), of(1, kLater, "", ""), of(1, kNow, "", "")},
       false},
      {"twenty days each",
       {of(0, kNow, "", ""), of(1, kNow + 40 * kDayNs, "", ""), of(2, kNow + 20 * kDayNs, "", "")},
       false},
      {"exchanges with the master", {asked(0, kNow, "a", 5), asked(1, kLater, "b", 9)}, false},
      {"exchanges of one alone", {asked(0, kNow, "a", 5), of(1, kLater, "b", "")}, true},
      {"a barrier",
       {synced(0, kNow, "a", kNow), synced(1, kNow, "b", kNow), synced(1, kLater, "b", kLater),
        synced(0, kLater, "a", kLater)},
       false},
      {"a barrier that is none: of another year",
       {synced(0, kNow, "a", kNow), synced(1, kNow, "b", kNow - 1000 * kDayNs)},
       true},
      {"a person", {of(0, kNow, "a", ""), shifted(of(1, kLater, "b", ""), kNow - kLater)}, false},
      {"one rank, one clock from a start", {of(0, kNow, "", ""), of(0, kUptime, "", "")}, true},
      {"one kernel, one clock from a start", {of(0, kNow, "", "k"), of(0, kUptime, "", "k")}, true},
      {"one rank, two starts",
       {of(0, kUptime, "", ""), of(0, kUptime + 31 * kDayNs, "", "")},
       true},
      {"one start", {of(0, kUptime, "", "k"), of(0, kUptime + 31 * kDayNs, "", "k")}, false},
      {"close, from starts", {of(0, kUptime, "", ""), of(1, kUptime + 29 * kDayNs, "", "")}, false},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    std::vector<MergeInput> inputs = row.inputs;
    for (const bool is_turned : {false, true}) {
      if (is_turned) std::reverse(inputs.begin(), inputs.end());
      const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
      EXPECT_EQ(plan.ok(), !row.is_refused) << plan.status();
      if (row.is_refused) {
        EXPECT_TRUE(absl::IsInvalidArgument(plan.status()));
        EXPECT_THAT(std::string(plan.status().message()), HasSubstr("nothing in common"));
      }
      EXPECT_TRUE(PlanMerge(inputs, MergeAlignment::kStart).ok());
    }
  }
}

TEST(MergeTies, ARankThatANameAndTheTraceSayOtherwiseIsTold) {
  const struct {
    std::optional<std::int32_t> rank;
    bool is_of_name;
    std::optional<std::int32_t> own;
    const char* note;  // nullptr: none
  } rows[] = {
      {2, true, 7, "x: its name says rank 2, the trace itself rank 7; it is taken as rank 2"},
      {2, true, 2, nullptr},
      {2, true, std::nullopt, nullptr},
      {2, false, 7, nullptr},  // a person said it
      {std::nullopt, false, 7, nullptr},
  };
  for (const auto& row : rows) {
    MergeInput input = TraceOf(0, kNow);
    input.label = "x";
    input.rank = row.rank;
    input.is_rank_of_name = row.is_of_name;
    input.origin.rank = row.own;
    const auto plan = PlanMerge({input}, MergeAlignment::kClock);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->inputs[0].rank, row.rank.value_or(7));
    EXPECT_EQ(plan->notes, row.note == nullptr ? std::vector<std::string>()
                                               : std::vector<std::string>({row.note}));
  }
  // Of thousands not all.
  std::vector<MergeInput> many;
  for (std::int32_t rank = 0; rank < 4000; ++rank) {
    many.push_back(TraceOf(rank + 1, kNow));
    many.back().rank = rank;
    many.back().is_rank_of_name = true;
  }
  const auto plan = PlanMerge(many, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->notes.size(), 21u);
  EXPECT_EQ(plan->notes[20], "3980 more traces have another rank in their names than they say");
}

}  // namespace
}  // namespace stepwell
