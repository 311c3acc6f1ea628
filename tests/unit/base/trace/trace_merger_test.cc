#include "base/trace/trace_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/trace/trace_origin.h"
#include "base/trace/trace_reading.h"
#include "base/trace/trace_splitter.h"
#include "tests/unit/base/trace/drifting_rank.h"

namespace stepwell {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Merged {
  json trace;
  std::int64_t left_out = 0;
  // Events by phase and name, metadata left out.
  std::vector<json> Named(const std::string& name) const {
    std::vector<json> found;
    for (const json& event : trace.at("traceEvents")) {
      if (event.at("ph") != "M" && event.value("name", "") == name) found.push_back(event);
    }
    return found;
  }
  std::string ProcessName(const json& pid) const {
    for (const json& event : trace.at("traceEvents")) {
      if (event.value("name", "") == "process_name" && event.at("pid") == pid)
        return event.at("args").at("name");
    }
    return "";
  }
};

TraceOrigin ScannedOrigin(const std::string& text) {
  const auto scanned = ScanTrace([&](const TakeBytes& take) -> absl::Status { return take(text); });
  EXPECT_TRUE(scanned.ok()) << scanned.status();
  return scanned.ok() ? scanned->origin : TraceOrigin();
}

Merged Merge(const std::vector<std::string>& texts) {
  std::vector<MergeInput> inputs;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    inputs.push_back({.label = absl::StrCat("file ", i),
                      .origin = ScannedOrigin(texts[i]),
                      .rank = {},
                      .cycle = "",
                      .machine = "",
                      .shift_ns = {}});
  }
  const auto plan = PlanMerge(inputs, MergeAlignment::kClock);
  EXPECT_TRUE(plan.ok()) << plan.status();
  std::string out;
  TraceMerger merger(*plan, [&](std::string_view bytes) {
    out += bytes;
    return absl::OkStatus();
  });
  EXPECT_TRUE(merger.Begin().ok());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(merger.BeginInput(i).ok());
    TraceSplitter splitter(
        {.event = [&](std::string_view event) { return merger.TakeEvent(event); }, .member = {}});
    EXPECT_TRUE(splitter.Feed(texts[i]).ok());
  }
  EXPECT_TRUE(merger.End().ok());
  return {json::parse(out), merger.left_out_count()};
}

// A cycle as Composer writes it.
std::string Cycle(int rank, int sync_us, int begin_us, int end_us) {
  const std::string common = absl::StrCat("\"pid\":", rank, ",\"tid\":77,\"ts\":");
  return absl::StrCat(
      "[{\"name\":\"global_rank\",\"ph\":\"M\",", common, sync_us, ",\"args\":{\"value\":", rank,
      "}},\n{\"name\":\"process_name\",\"ph\":\"M\",", common, sync_us,
      ",\"args\":{\"name\":\"training\"}},\n{\"name\":\"clock_sync_timestamp_us\",\"ph\":\"M\",",
      common, sync_us, ",\"args\":{\"value\":", sync_us,
      "}},\n{\"name\":\"f\",\"cat\":\"event\",\"ph\":\"B\",", common, begin_us,
      ",\"args\":{\"epoch\":0}},\n{\"name\":\"f\",\"ph\":\"E\",", common, end_us, "}]");
}

TEST(TraceMerger, RanksAndCyclesOfComposerLieWhereTheyWere) {
  const Merged merged = Merge({Cycle(0, 1000, 1100, 1200), Cycle(1, 5000, 5100, 5200),
                               Cycle(0, 2000, 2100, 2150), Cycle(1, 6500, 6600, 6650)});
  std::map<std::string, std::vector<double>> times;
  for (const json& event : merged.Named("f")) {
    times[merged.ProcessName(event.at("pid"))].push_back(event.at("ts").get<double>());
  }
  EXPECT_EQ(merged.trace.at("baseTimeNanoseconds"), 0);
  EXPECT_THAT(times["rank 0 · training"], ElementsAre(1100, 1200, 2100, 2150));
  EXPECT_THAT(times["rank 1 · training"], ElementsAre(1100, 1200, 2100, 2150));
  EXPECT_EQ(times.size(), 2u);
  EXPECT_EQ(merged.trace.at("metadata").at("inputs").at(3).at("shift_us"), -4500);
}

// Its times and durations are those of the common clock, and what ends together still does.
TEST(TraceMerger, ADriftIsTakenOutOfTimesAndDurations) {
  const Merged merged = Merge({testing::DriftingRank(0, 0), testing::DriftingRank(1, 40)});
  const auto of = [&](const char* name, const char* rank) {
    for (const json& event : merged.Named(name)) {
      if (merged.ProcessName(event.at("pid")) == rank) return event;
    }
    return json();
  };
  const json& inputs = merged.trace.at("metadata").at("inputs");
  EXPECT_FALSE(inputs.at(0).contains("drift_us_per_s"));
  EXPECT_NEAR(inputs.at(1).at("drift_us_per_s").get<double>(), 40, 1e-3);
  const double error_us = inputs.at(1).at("clock_error_us").get<double>();
  EXPECT_LT(error_us, 1200) << "as far as clocks drift in ten seconds; 2000 and more without";
  EXPECT_EQ(of("outer", "rank 0").at("dur"), 40'000'000);
  const double begin = of("outer", "rank 0").at("ts").get<double>();
  const json outer = of("outer", "rank 1"), inner = of("inner", "rank 1");
  EXPECT_NEAR(outer.at("dur").get<double>(), 40'000'000 + 1600, 0.01);
  EXPECT_NEAR(inner.at("dur").get<double>(), 20'000'000 + 800, 0.01);
  EXPECT_NEAR(outer.at("ts").get<double>(), begin + 50 * 40, error_us);
  EXPECT_EQ(std::llround(1000 * (outer.at("ts").get<double>() + outer.at("dur").get<double>())),
            std::llround(1000 * (inner.at("ts").get<double>() + inner.at("dur").get<double>())));
}

TEST(TraceMerger, WhatAnInputLeavesOpenEndsWithIt) {
  // Composer's cycle that is cut within two scopes, and the next one, whose first begins were written into the cycle before.
  std::string cut = Cycle(0, 1000, 1100, 1200);
  cut.pop_back();
  for (const char* name : {"batch", "forward"}) {
    absl::StrAppend(&cut, R"(,{"name":")", name, R"(","ph":"B","pid":0,"tid":77,"ts":1300})");
  }
  absl::StrAppend(&cut, R"(,{"name":"x","ph":"X","pid":0,"tid":77,"ts":1350,"dur":10}])");
  std::string next = Cycle(0, 2000, 2100, 2150);
  next.pop_back();
  absl::StrAppend(&next, R"(,{"name":"batch","ph":"E","pid":0,"tid":77,"ts":2200}])");
  const Merged merged = Merge({cut, next});
  std::vector<std::string> nesting;
  for (const json& event : merged.trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    if (phase == "B" || phase == "E") {
      nesting.push_back(absl::StrCat(phase, event.value("name", "-"), event.at("ts").get<int>()));
    }
  }
  EXPECT_THAT(nesting, ElementsAre("Bf1100", "Ef1200", "Bbatch1300", "Bforward1300", "E-1360",
                                   "E-1360", "Bf2100", "Ef2150"));
  EXPECT_EQ(merged.left_out, 1) << "the end without a begin";
}

// trace get --format json, and a merge of what it wrote.
TEST(TraceMerger, WhatItWroteOfATrainingIsNoNativeTraceAndKeepsItsClock) {
  const std::string recorded =
      R"([{"ph":"X","name":"step","ts":1732200000000000,"dur":5,"pid":1,"tid":2},)"
      R"({"ph":"M","name":"global_rank","pid":1,"tid":2,"args":{"value":3}},)"
      R"({"ph":"M","name":"master_clock","pid":1,"tid":2,"args":{"at_ns":1732200000000001000,)"
      R"("ahead_ns":-70,"error_ns":9,"trial":"p/t"}},)"
      R"({"ph":"M","name":"machine","pid":1,"tid":2,"args":{"name":"node-a"}}])";
  const std::string kineto =
      R"({"schemaVersion":1,"baseTimeNanoseconds":1732200000000000000,"distributedInfo":{"rank":3},)"
      R"("traceEvents":[{"ph":"X","name":"op","ts":1,"dur":1,"pid":1,"tid":2}]})";
  for (const bool is_native : {false, true}) {
    const std::string written = Merge({is_native ? kineto : recorded}).trace.dump();
    const TraceOrigin origin = ScannedOrigin(written);
    EXPECT_EQ(origin.is_native, is_native);
    EXPECT_EQ(origin.rank, 3);
    if (is_native) continue;
    ASSERT_TRUE(origin.master_clock.is_known());
    EXPECT_EQ(origin.master_clock.Within(origin.window).ahead_ns(), -70);
    EXPECT_EQ(origin.machine, "node-a");
  }
}

TEST(TraceMerger, OfSeveralClocksNoneIsToldOn) {
  const auto recorded = [](int rank, const char* machine, int ahead_ns) {
    return absl::StrCat(
        R"([{"ph":"X","name":"step","ts":1732200000000000,"dur":5,"pid":1,"tid":2},)",
        R"({"ph":"M","name":"global_rank","args":{"value":)", rank,
        R"(}},{"ph":"M","name":"machine","args":{"name":")", machine,
        R"("}},{"ph":"M","name":"master_clock","args":{"at_ns":1732200000000001000,"ahead_ns":)",
        ahead_ns, R"(,"error_ns":9,"trial":"p/t"}}])");
  };
  const std::string merged =
      Merge({recorded(0, "node-a", 0), recorded(1, "node-b", -70)}).trace.dump();
  EXPECT_EQ(merged.find("node-a"), std::string::npos) << "its readings do not hold for all of it";
  EXPECT_EQ(merged.find("ahead_ns"), std::string::npos);
  const std::string alone = Merge({recorded(0, "node-a", 0)}).trace.dump();
  EXPECT_NE(alone.find("node-a"), std::string::npos);
}

TEST(TraceMerger, WhatCountsFromItsStartGoesOnDoingSo) {
  const Merged merged = Merge({R"({"distributedInfo":{"rank":0},"traceEvents":[)"
                               R"({"ph":"X","name":"op","ts":0.25,"dur":1,"pid":1,"tid":1}]})"});
  EXPECT_EQ(merged.trace.at("baseTimeNanoseconds"), 0);
  EXPECT_EQ(merged.Named("op").at(0).at("ts"), 0.25);
}

TEST(TraceMerger, KinetosBaseIsAddedBackAndItsGridRespected) {
  // The same moment, of two ranks that took their bases on either side of a line of the grid.
  const auto trace = [](int rank, const char* base, const char* ts, bool base_last) {
    const std::string head =
        absl::StrCat("\"schemaVersion\":1,\"distributedInfo\":{\"rank\":", rank, "}");
    const std::string base_text = absl::StrCat("\"baseTimeNanoseconds\":", base);
    return absl::StrCat("{", head, ",", base_last ? "" : base_text + ",",
                        "\"traceEvents\":[{\"ph\":\"X\",\"name\":\"op\",",
                        "\"cat\":\"cpu_op\",\"ts\":", ts, ",\"dur\":1.5,\"pid\":9,\"tid\":9}]",
                        base_last ? "," + base_text : "", "}");
  };
  const Merged merged = Merge({trace(0, "1727722758000000000", "7889238000000.123", false),
                               trace(1, "1735611996000000000", "0.123", true)});
  const auto ops = merged.Named("op");
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(ops[0].at("ts"), ops[1].at("ts"));
  EXPECT_EQ(ops[0].at("dur").dump(), "1.5");
  EXPECT_NE(ops[0].at("pid"), ops[1].at("pid"));
  EXPECT_EQ(merged.trace.at("baseTimeNanoseconds").get<std::int64_t>() % 3'600'000'000'000, 0);
  EXPECT_EQ(
      merged.trace.at("baseTimeNanoseconds").get<double>() + ops[0].at("ts").get<double>() * 1000,
      1735611996000000123.0);
}

TEST(TraceMerger, PidsFlowsAndThreadsOfInputsAreKeptApart) {
  const auto trace = [](int rank) {
    return absl::StrCat(
        "{\"distributedInfo\":{\"rank\":", rank,
        "},\"traceEvents\":["
        "{\"ph\":\"s\",\"name\":\"flow\",\"cat\":\"ac2g\",\"id\":5,\"ts\":1,\"pid\":3,\"tid\":4},"
        "{\"ph\":\"f\",\"bp\":\"e\",\"name\":\"flow\",\"cat\":\"ac2g\",\"id\":5,\"ts\":2,\"pid\":0,"
        "\"tid\":7},"
        "{\"ph\":\"X\",\"name\":\"hex\",\"id\":\"0x10\",\"bind_id\":\"0x10\",\"ts\":1,\"dur\":1,"
        "\"pid\":3,\"tid\":0},"
        "{\"ph\":\"X\",\"name\":\"odd\",\"id\":\"wide\",\"ts\":1,\"dur\":1,\"pid\":\"Spans\","
        "\"tid\":\"PyTorch Profiler (0)\"},"
        "{\"ph\":\"X\",\"name\":\"minus\",\"ts\":1,\"dur\":1,\"pid\":-1,\"tid\":-5}]}");
  };
  const Merged merged = Merge({trace(0), trace(1)});
  const auto flows = merged.Named("flow");
  ASSERT_EQ(flows.size(), 4u);
  EXPECT_EQ(flows[0].at("id"), flows[1].at("id"));
  EXPECT_EQ(flows[2].at("id"), flows[3].at("id"));
  EXPECT_NE(flows[0].at("id"), flows[2].at("id"));
  EXPECT_EQ(flows[1].at("bp"), "e");
  std::set<json> pids;
  for (const json& event : merged.trace.at("traceEvents")) {
    EXPECT_TRUE(event.at("pid").is_number_unsigned() && event.at("pid") != 0);
    EXPECT_TRUE(event.at("tid").is_number_unsigned());
    if (event.at("ph") == "M") continue;
    EXPECT_NE(event.at("tid"), 0) << event;
    pids.insert(event.at("pid"));
  }
  EXPECT_EQ(pids.size(), 8u);
  const auto hex = merged.Named("hex");
  EXPECT_EQ(hex[0].at("id"), hex[0].at("bind_id"));
  EXPECT_NE(hex[0].at("id"), hex[1].at("id"));
  EXPECT_THAT(merged.ProcessName(merged.Named("odd")[1].at("pid")), HasSubstr("rank 1"));
}

TEST(TraceMerger, IdsOfAsynchronousEventsAreKeptApartInBothTheirForms) {
  const auto text = [](int rank) {
    return absl::StrCat(
        R"({"distributedInfo":{"rank":)", rank,
        R"(},"traceEvents":[{"ph":"b","cat":"c","name":"old","id":7,"ts":1,"pid":1,"tid":1},)"
        R"({"ph":"b","cat":"c","name":"local","id2":{"local":"0x7"},"ts":1,"pid":1,"tid":1},)"
        R"({"ph":"e","cat":"c","name":"local","id2":{"local":"0x7"},"ts":2,"pid":1,"tid":1},)"
        R"({"ph":"b","cat":"c","name":"global","id2":{"global":7},"ts":1,"pid":1,"tid":1},)"
        R"({"ph":"b","cat":"c","name":"odd","id2":"seven","ts":1,"pid":1,"tid":1}]})");
  };
  const Merged merged = Merge({text(0), text(1)});
  const auto ids = [&](const char* name, const char* kind) {
    std::set<std::string> found;
    for (const json& event : merged.Named(name)) found.insert(event.at("id2").at(kind));
    return found;
  };
  ASSERT_EQ(merged.Named("local").size(), 4u);
  EXPECT_EQ(ids("local", "local").size(), 2u) << "of two inputs, each the same at begin and end";
  EXPECT_EQ(ids("global", "global").size(), 2u);
  EXPECT_EQ(ids("local", "local"), ids("global", "global")) << "each the input's seven";
  EXPECT_EQ(merged.Named("odd").at(0).at("id2"), "seven");
}

TEST(TraceMerger, WhoseATraceIsIsToldAsKinetoDoesWhereItIsOnes) {
  const auto text = [](int rank) {
    return absl::StrCat(R"({"distributedInfo":{"rank":)", rank,
                        R"(},"traceEvents":[{"ph":"i","name":"a","ts":1,"pid":1,"tid":1}]})");
  };
  EXPECT_EQ(Merge({text(3), text(3)}).trace.at("distributedInfo").at("rank"), 3);
  EXPECT_FALSE(Merge({text(3), text(4)}).trace.contains("distributedInfo"));
}

TEST(TraceMerger, AnIdThatIsNoNumberIsTheSameOneInEachMerge) {
  const Merged merged =
      Merge({R"({"distributedInfo":{"rank":0},"traceEvents":[)"
             R"({"ph":"b","name":"odd","cat":"c","id":"wide","ts":1,"pid":1,"tid":1}]})"});
  EXPECT_EQ(merged.Named("odd")[0].at("id"), INT64_C(1813853012627));
}

TEST(TraceMerger, NamesAsLongAsAnEventDoNotFillMemory) {
  const std::string one(1 << 20, 'a'), other = one + "b";
  const auto event = [](const std::string& pid, const std::string& tid) {
    return absl::StrCat(R"({"ph":"X","name":"e","ts":1,"dur":1,"pid":")", pid, R"(","tid":")", tid,
                        R"("})");
  };
  const Merged merged = Merge({absl::StrCat(
      R"({"distributedInfo":{"rank":0},"traceEvents":[{"ph":"M","name":"process_name","pid":")",
      other, R"(","args":{"name":")", other, R"("}},)", event(one, "1"), ",", event(other, "1"),
      ",", event(one, one), ",", event(one, other), ",", event(one, one), "]}")});
  const auto events = merged.Named("e");
  ASSERT_EQ(events.size(), 5u);
  EXPECT_NE(events[0].at("pid"), events[1].at("pid"));
  EXPECT_NE(events[2].at("tid"), events[3].at("tid"));
  EXPECT_EQ(events[2].at("tid"), events[4].at("tid"));
  EXPECT_LT(merged.trace.dump().size(), 5000u);
  EXPECT_THAT(merged.ProcessName(events[1].at("pid")), HasSubstr("rank 0 · aaa"));
}

TEST(TraceMerger, AnAbsurdBoundOfABarrierIsNone) {
  const auto cycle = [](int rank, const char* bound) {
    std::string text = Cycle(rank, 1000, 1100, 1200);
    text.insert(
        1, absl::StrCat("{\"name\":\"clock_sync_error_bound\",\"ph\":\"M\",\"args\":{\"value\":",
                        bound, "}},"));
    return text;
  };
  const Merged merged = Merge({cycle(0, "9e15"), cycle(1, "9e15"), cycle(2, "-5")});
  const json& inputs = merged.trace.at("metadata").at("inputs");
  EXPECT_NEAR(inputs.at(1).at("clock_error_us").get<double>(), 7.2e9, 1);
  EXPECT_NEAR(inputs.at(2).at("clock_error_us").get<double>(), 3.6e9, 1);
}

TEST(TraceMerger, WhatIsNoEventIsLeftOutAndCounted) {
  const Merged merged =
      Merge({"{\"distributedInfo\":{\"rank\":0},\"traceEvents\":["
             "{\"ph\":\"X\",\"name\":\"good\",\"ts\":1,\"dur\":1,\"pid\":1,\"tid\":1},"
             "{\"ph\":\"X\",\"name\":\"no time\",\"pid\":1,\"tid\":1},"
             "{\"ph\":\"X\",\"name\":\"never\",\"ts\":NaN,\"pid\":1,\"tid\":1},"
             "{\"ph\":\"X\",\"name\":\"far\",\"ts\":9e18,\"pid\":1,\"tid\":1},"
             "{\"name\":\"no phase\",\"ts\":1},"
             "{\"ph\":\"B\",\"name\":\"begun\",\"ts\":2,\"pid\":1,\"tid\":1},"
             "{\"ph\":\"E\",\"ts\":3,\"pid\":1,\"tid\":1}]}"});
  EXPECT_EQ(merged.left_out, 4);
  EXPECT_EQ(merged.Named("good").size(), 1u);
  EXPECT_EQ(merged.Named("").size(), 1u) << "an E needs no name";
}

// As a clock that was broken for an event has it: nothing shows what lies before the base.
TEST(TraceMerger, WhatLiesBeforeTheBaseIsLeftOutAndCounted) {
  const Merged merged = Merge(
      {R"({"baseTimeNanoseconds":1735611996000000000,"distributedInfo":{"rank":0},"traceEvents":[)"
       R"({"ph":"X","name":"a","ts":5,"dur":1,"pid":1,"tid":1},)"
       R"({"ph":"X","name":"early","ts":-3e15,"dur":1,"pid":1,"tid":1}]})"});
  EXPECT_EQ(merged.left_out, 1);
  EXPECT_EQ(merged.Named("a").size(), 1U);
  EXPECT_EQ(merged.Named("early").size(), 0U);
}

TEST(TraceMerger, AMergedTraceIsATraceAgain) {
  const std::vector<std::string> cycles = {Cycle(0, 1000, 1100, 1200), Cycle(1, 5000, 5100, 5200)};
  const Merged merged = Merge(cycles);
  EXPECT_TRUE(merged.Named("global_rank").empty());
  for (const json& event : merged.trace.at("traceEvents")) {
    EXPECT_NE(event.value("name", ""), "clock_sync_timestamp_us") << "it no longer holds";
  }
}

}  // namespace
}  // namespace stepwell
