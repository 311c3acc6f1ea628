#include "base/trace/perfetto_merger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/trace/trace_reading.h"
#include "tests/support/codec_vectors.h"
#include "tests/unit/base/trace/drifting_rank.h"
#include "tests/unit/base/trace/perfetto_merging.h"
#include "tests/unit/base/trace/perfetto_reading.h"
#include "tests/unit/base/trace/plan_of_texts.h"

namespace stepwell {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::Merge;
using testing::Merged;
using testing::PerfettoEvent;
using testing::PerfettoReading;
using testing::PerfettoTrace;
using testing::PlanOf;
using ::testing::SizeIs;
using testing::SourceOf;
using testing::Trace;

std::string Cycle(int rank, int sync, int begin, int end) {
  const auto metadata = [&](const char* name, const char* key, const std::string& value) {
    return absl::StrCat("{\"ph\":\"M\",\"name\":\"", name, "\",\"pid\":", rank,
                        ",\"tid\":7,\"args\":{\"", key, "\":", value, "}}");
  };
  return absl::StrCat("[", metadata("process_name", "name", "\"training\""), ",",
                      metadata("global_rank", "value", absl::StrCat(rank)), ",",
                      metadata("thread_name", "name", "\"Training Loop\""), ",",
                      metadata("clock_sync_timestamp_us", "value", absl::StrCat(sync)), ",",
                      metadata("clock_sync_error_bound", "value", "2"),
                      ",{\"name\":\"batch\",\"cat\":\"event\",\"ph\":\"B\",\"ts\":", begin,
                      ",\"pid\":", rank, ",\"tid\":7,\"args\":{\"epoch\":0,\"batch\":3}}",
                      ",{\"name\":\"batch\",\"cat\":\"event\",\"ph\":\"E\",\"ts\":", end,
                      ",\"pid\":", rank, ",\"tid\":7}]");
}

TEST(PerfettoMerger, RanksAndCyclesComeOntoOneTimeLineWithTheirClockErrors) {
  const Merged merged = Merge({Cycle(0, 1000, 1100, 1200), Cycle(1, 5000, 5100, 5200),
                               Cycle(0, 2000, 2100, 2150), Cycle(1, 6500, 6600, 6650)});
  std::map<std::string, std::vector<std::int64_t>> times;
  for (const PerfettoEvent& event : merged.trace.Named("batch")) {
    times[merged.trace.ProcessOf(event.track)].push_back(event.begin_ns);
    times[merged.trace.ProcessOf(event.track)].push_back(event.end_ns);
    EXPECT_EQ(event.category, "event");
    EXPECT_EQ(event.args.at("batch"), "3");
    EXPECT_EQ(merged.trace.tracks.at(event.track).name, "Training Loop");
    EXPECT_EQ(merged.trace.tracks.at(event.track).tid, 7);
  }
  EXPECT_EQ(times.size(), 2u);
  EXPECT_THAT(times["rank 0 · training"], ElementsAre(1100'000, 1200'000, 2100'000, 2150'000));
  EXPECT_THAT(times["rank 1 · training"], ElementsAre(1100'000, 1200'000, 2100'000, 2150'000));
  const auto inputs = merged.trace.Named("input");
  ASSERT_THAT(inputs, SizeIs(4));
  std::set<std::string> shifts;
  for (const PerfettoEvent& event : inputs) shifts.insert(event.args.at("shift_ns"));
  EXPECT_THAT(shifts, ElementsAre("-4000000", "-4500000", "0"));
  std::set<std::string> labels;
  for (const auto& [track, each] : merged.trace.tracks) {
    if (each.is_process) labels.insert(each.label);
  }
  EXPECT_THAT(labels, ElementsAre("clock error 0.000 us", "clock error 4.020 us"));
  EXPECT_EQ(merged.trace.orphan_ends, 0);
  EXPECT_EQ(merged.written, 4);
  EXPECT_EQ(merged.left_out, 0);
}

TEST(PerfettoMerger, ADriftIsTakenOutOfTimesAndDurations) {
  const Merged merged = Merge({testing::DriftingRank(0, 0), testing::DriftingRank(1, 40)});
  const auto outer = merged.trace.Named("outer"), inner = merged.trace.Named("inner");
  ASSERT_THAT(outer, SizeIs(2));
  ASSERT_THAT(inner, SizeIs(2));
  const bool is_first = outer[0].end_ns - outer[0].begin_ns == 40'000'000'000;
  const PerfettoEvent& slow = outer[is_first ? 1 : 0];
  const PerfettoEvent& within = inner[inner[0].end_ns == slow.end_ns ? 0 : 1];
  EXPECT_NEAR(static_cast<double>(slow.end_ns - slow.begin_ns), 40'001'600'000, 10);
  EXPECT_NEAR(static_cast<double>(within.end_ns - within.begin_ns), 20'000'800'000, 10);
  EXPECT_EQ(within.end_ns, slow.end_ns);
  EXPECT_EQ(within.depth, slow.depth + 1);
  int told = 0;
  for (const PerfettoEvent& event : merged.trace.Named("input")) {
    told += static_cast<int>(event.args.count("drift_us_per_s"));
  }
  EXPECT_EQ(told, 1);
}

TEST(PerfettoMerger, EveryKindOfEventHasItsForm) {
  const Merged merged = Merge({Trace(
      3,
      R"({"ph":"X","name":"op \"a\"","cat":"cpu_op","ts":10.001,"dur":5.25,"pid":1,"tid":2,)"
      R"("args":{"n":-7,"x":0.5,"on":true,"t\u0065xt":"two\nlines","dims":[[1,2],[]],"none":null}},)"
      R"({"ph":"s","id":5,"name":"f","cat":"ac2g","ts":11,"pid":1,"tid":2},)"
      R"({"ph":"X","name":"kernel","ts":20,"dur":3,"pid":0,"tid":7},)"
      R"({"ph":"f","id":5,"name":"f","cat":"ac2g","bp":"e","ts":20,"pid":0,"tid":7},)"
      R"({"ph":"i","name":"mark","s":"p","ts":12,"pid":1,"tid":2},)"
      R"({"ph":"C","name":"memory","ts":13,"pid":1,"tid":2,"args":{"used":1.5,"free":"2"}},)"
      R"({"ph":"b","cat":"io","id":"0x1","name":"read","ts":14,"pid":1,"tid":2},)"
      R"({"ph":"b","cat":"io","id":"0x2","name":"read","ts":15,"pid":1,"tid":2},)"
      R"({"ph":"e","cat":"io","id":"0x1","name":"read","ts":18,"pid":1,"tid":2,"args":{"k":1}},)"
      R"({"ph":"e","cat":"io","id":"0x2","name":"read","ts":19,"pid":1,"tid":2},)"
      R"x({"ph":"X","name":"odd","ts":1,"dur":1,"pid":"Spans","tid":"PyTorch Profiler (0)"},)x"
      R"({"ph":"B","name":"open","ts":30,"pid":1,"tid":2})")});
  const PerfettoTrace& trace = merged.trace;
  const PerfettoEvent op = trace.Named("op \"a\"").at(0);
  EXPECT_EQ(op.begin_ns, 10'001);
  EXPECT_EQ(op.end_ns, 15'251);
  EXPECT_EQ(op.category, "cpu_op");
  const std::map<std::string, std::string> args = {{"n", "-7"},
                                                   {"x", "0.500000"},
                                                   {"on", "true"},
                                                   {"text", "two\nlines"},
                                                   {"dims", "[[1,2],[]]"},
                                                   {"none", "null"}};
  EXPECT_EQ(op.args, args);
  const PerfettoEvent kernel = trace.Named("kernel").at(0);
  ASSERT_THAT(op.flows, SizeIs(1));
  EXPECT_EQ(op.flows, kernel.ended_flows);
  EXPECT_NE(trace.tracks.at(op.track).pid, trace.tracks.at(kernel.track).pid);
  const PerfettoEvent mark = trace.Named("mark").at(0);
  EXPECT_TRUE(mark.is_instant && trace.tracks.at(mark.track).is_process);
  std::map<std::string, double> counts;
  for (const auto& [track, values] : trace.counts) {
    ASSERT_THAT(values, SizeIs(1));
    EXPECT_EQ(values[0].first, 13'000);
    counts[trace.tracks.at(track).name] = values[0].second;
    EXPECT_EQ(trace.ProcessOf(track), "rank 3");
  }
  EXPECT_EQ(counts, (std::map<std::string, double>{{"memory free", 2}, {"memory used", 1.5}}));
  const auto reads = trace.Named("read");
  ASSERT_THAT(reads, SizeIs(2));
  EXPECT_NE(reads[0].track, reads[1].track);
  EXPECT_EQ(reads[0].end_ns, 18'000);
  EXPECT_EQ(reads[0].args.at("k"), "1");
  EXPECT_EQ(reads[1].end_ns, 19'000);
  EXPECT_EQ(trace.tracks.at(trace.Named("odd").at(0).track).name, "PyTorch Profiler (0)");
  const PerfettoEvent open = trace.Named("open").at(0);
  EXPECT_EQ(open.end_ns, 30'000);
  EXPECT_EQ(open.args.at("unfinished"), "true");
  EXPECT_EQ(merged.left_out, 0);
}

TEST(PerfettoMerger, WhatOverlapsWithoutNestingHasARowBeside) {
  // As two kernels of one stream do, and as a file that is in order of categories, not of time.
  const Merged merged =
      Merge({Trace(0, R"({"ph":"X","name":"a","ts":10,"dur":10,"pid":1,"tid":2},)"
                      R"({"ph":"X","name":"b","ts":15,"dur":10,"pid":1,"tid":2},)"
                      R"({"ph":"X","name":"later","ts":20,"dur":10,"pid":1,"tid":2},)"
                      R"({"ph":"X","name":"within","ts":17,"dur":3,"pid":1,"tid":2})")});
  const auto only = [&](const char* name) { return merged.trace.Named(name).at(0); };
  EXPECT_EQ(only("a").end_ns, 20'000);
  EXPECT_EQ(only("b").end_ns, 25'000);
  EXPECT_EQ(only("within").end_ns, 20'000);
  EXPECT_EQ(only("within").track, only("a").track);
  EXPECT_EQ(only("within").depth, 1u);
  EXPECT_EQ(only("later").track, only("a").track);
  EXPECT_EQ(only("later").depth, 0u);
  EXPECT_NE(only("b").track, only("a").track);
  EXPECT_EQ(merged.trace.tracks.at(only("b").track).parent, only("a").track);
}

// Metadata of an agent has a time: at the begin of all, an hour before, it would stretch what a viewer shows.
TEST(PerfettoMerger, WhoseClockItIsStandsWhereItWasSaid) {
  const char kSaid[] =
      R"({"ph":"M","name":"machine","ts":20,"pid":1,"tid":1,"args":{"name":"node-a"}},)"
      R"({"ph":"X","name":"a","ts":10,"dur":20,"pid":1,"tid":1},)"
      R"({"ph":"M","name":"machine","pid":1,"tid":1,"args":{"name":"of no time"}},)"
      R"({"ph":"M","name":"master_clock","ts":25,"pid":1,"tid":1,"args":{"at_ns":25000,"ahead_ns":7,)"
      R"("error_ns":2,"trial":"t"}})";
  const Merged merged = Merge({Trace(0, kSaid)});
  ASSERT_THAT(merged.trace.Named("machine"), SizeIs(1));
  EXPECT_EQ(merged.trace.Named("machine").at(0).begin_ns, 20'000);
  EXPECT_EQ(merged.trace.Named("machine").at(0).args.at("name"), "node-a");
  ASSERT_THAT(merged.trace.Named("master_clock"), SizeIs(1));
  EXPECT_EQ(merged.trace.Named("master_clock").at(0).begin_ns, 25'000);
}

TEST(PerfettoMerger, ACutFileHasItsWholeBlocks) {
  std::string events;
  for (int i = 0; i < 20'000; ++i) {
    absl::StrAppend(&events, i == 0 ? "" : ",", R"({"ph":"X","name":"op)", i * 7919 % 1000,
                    R"(","ts":)", i * 10, R"(,"dur":5,"pid":1,"tid":2})");
  }
  const Merged merged = Merge({Trace(0, events)});
  EXPECT_THAT(merged.trace.events, SizeIs(20'001));
  EXPECT_TRUE(merged.trace.is_whole);
  const PerfettoTrace cut = PerfettoReading::Read(merged.bytes.substr(0, merged.bytes.size() / 2));
  EXPECT_FALSE(cut.is_whole);
  EXPECT_GT(cut.events.size(), 5000u);
  EXPECT_EQ(cut.events[100].name, merged.trace.events[100].name);
}

TEST(PerfettoMerger, HostileInputIsLeftOutAndCounted) {
  const Merged merged =
      Merge({Trace(0, R"({"ph":"X","name":"good","ts":10,"dur":1,"pid":1,"tid":1},)"
                      R"({"ph":"X","name":"no time","pid":1,"tid":1},)"
                      R"({"ph":"X","name":"never","ts":NaN,"pid":1,"tid":1},)"
                      R"({"ph":"X","name":"far","ts":9e18,"pid":1,"tid":1},)"
                      R"({"ph":"X","name":"before","ts":-5,"dur":1,"pid":1,"tid":1},)"
                      R"({"ph":"X","name":"backwards","ts":20,"dur":-5,"pid":1,"tid":1},)"
                      R"({"ph":"E","ts":3,"pid":1,"tid":1},)"
                      R"({"ph":"C","name":"c","ts":3,"pid":1,"tid":1,"args":{"v":"much"}},)"
                      R"({"ph":"s","id":1,"ts":1000,"pid":1,"tid":1},)"
                      R"({"ph":"Q","ts":3,"pid":1,"tid":1})")});
  EXPECT_EQ(merged.left_out, 7);
  EXPECT_THAT(merged.trace.Named("good"), SizeIs(1));
  EXPECT_THAT(merged.trace.Named("before"), SizeIs(1));
  EXPECT_EQ(merged.trace.Named("backwards").at(0).end_ns, 20'000);
  EXPECT_THAT(merged.trace.Named("far"), IsEmpty());
}

TEST(PerfettoMerger, TimesFurtherFromTheFirstThanCanBeSaidAreLeftOut) {
  // 222 years before 1970 the first, 285 behind it the others: both are times, what lies between is none.
  const std::string first = R"({"ph":"i","name":"first","ts":-7e15,"pid":1,"tid":1})";
  const Merged merged = Merge(
      {Trace(0, first + R"(,{"ph":"i","name":"far","ts":9e15,"pid":1,"tid":1})"
                        R"(,{"ph":"X","name":"long","ts":1e15,"dur":8e15,"pid":1,"tid":1})"
                        R"(,{"ph":"C","name":"count","ts":9e15,"pid":1,"args":{"a":1}})"
                        R"(,{"ph":"X","name":"near","ts":1e15,"dur":1e15,"pid":1,"tid":1})")});
  EXPECT_EQ(merged.left_out, 3);
  EXPECT_THAT(merged.trace.Named("first"), SizeIs(1));
  EXPECT_THAT(merged.trace.Named("near"), SizeIs(1));
  EXPECT_THAT(merged.trace.Named("far"), IsEmpty());
  EXPECT_THAT(merged.trace.Named("long"), IsEmpty());
}

TEST(PerfettoMerger, CountersOfMachinesHaveProcessesOfTheirOwn) {
  const std::vector<std::string> texts = {
      Trace(0, R"({"ph":"X","name":"a","ts":10,"dur":1,"pid":1,"tid":1})")};
  const MergePlan plan = PlanOf(texts);
  for (const MergeForm form :
       {MergeForm::kPerfetto, MergeForm::kPerfettoPlain, MergeForm::kChrome}) {
    std::string bytes;
    const auto counts = MergeTraces(
        plan, [&](const PlacedInput&) { return SourceOf(texts[0]); }, form,
        [&](std::string_view piece) {
          bytes += piece;
          return absl::OkStatus();
        },
        [](MergeWriter& writer) {
          for (const char* name : {"cpu_util_simple", "gpu_util 0"}) {
            EXPECT_TRUE(writer.BeginCounter({"machine a", name, "percent"}).ok());
            EXPECT_TRUE(writer.TakeCount(12'000, 0.1).ok());
            EXPECT_TRUE(writer.TakeCount(13'500, NAN).ok());
          }
          return absl::OkStatus();
        });
    ASSERT_TRUE(counts.ok());
    EXPECT_EQ(counts->written, 3);
    EXPECT_EQ(counts->left_out, 2);
    if (form == MergeForm::kChrome) {
      EXPECT_THAT(bytes, ::testing::HasSubstr(
                             R"x({"ph":"C","name":"gpu_util 0 (percent)","pid":2,"tid":0,)x"
                             R"("ts":12.000,"args":{"value":0.1}})"));
      continue;
    }
    const PerfettoTrace trace = PerfettoReading::Read(bytes);
    ASSERT_THAT(trace.counts, SizeIs(2));
    for (const auto& [track, values] : trace.counts) {
      EXPECT_THAT(values, ElementsAre(std::pair(INT64_C(12'000), 0.1)));
      EXPECT_EQ(trace.ProcessOf(track), "machine a");
      EXPECT_EQ(trace.tracks.at(track).unit, "percent");
    }
  }
}

// Random slices of random threads, nested or not, in order or not, in windows large and small: each comes back with its
// begin, end and arguments, once.
TEST(PerfettoMerger, SlicesComeBackAsTheyWere) {
  const std::uint64_t seed = testing::TestSeed();

  for (std::uint64_t round = 0; round < 60; ++round) {
    std::mt19937_64 random(seed + round);
    std::string events;
    std::multiset<std::string> wanted;
    for (int i = 0; i < 200; ++i) {
      const auto begin = static_cast<std::int64_t>(random() % 500);
      const auto length = static_cast<std::int64_t>(random() % (round % 3 == 0 ? 200 : 8));
      const auto thread = random() % 5 + 1;
      absl::StrAppend(&events, i == 0 ? "" : ",", R"({"ph":"X","name":"n)", i % 7, R"(","ts":)",
                      begin, R"(,"dur":)", length, R"(,"pid":1,"tid":)", thread, R"(,"args":{"i":)",
                      i, "}}");
      wanted.insert(absl::StrCat(i, " n", i % 7, " ", begin * 1000, " ", (begin + length) * 1000));
    }
    const Merged merged =
        Merge({Trace(0, events)},
              {.is_packed = round % 2 == 0,
               .held_bytes_max = round % 4 < 2 ? PerfettoMerger::kHeldBytesMax : 2000});
    std::multiset<std::string> seen;
    for (const PerfettoEvent& event : merged.trace.events) {
      if (event.is_instant) continue;
      seen.insert(absl::StrCat(event.args.at("i"), " ", event.name, " ", event.begin_ns, " ",
                               event.end_ns));
    }
    EXPECT_EQ(merged.left_out + static_cast<std::int64_t>(seen.size()), 200);
    EXPECT_TRUE(std::includes(wanted.begin(), wanted.end(), seen.begin(), seen.end())) << round;
    EXPECT_TRUE(merged.left_out > 0 || seen == wanted);
    EXPECT_EQ(merged.trace.orphan_ends, 0);
  }
}

// Kineto writes an activity's end of a flow behind it: also where the slices that are held are too many just then.
TEST(PerfettoMerger, AFlowBehindItsSliceFindsIt) {
  std::string events;
  constexpr int kLaunches = 100;
  for (const bool is_end : {false, true}) {
    for (int i = 0; i < kLaunches; ++i) {
      const std::string row = absl::StrCat(R"("pid":)", is_end, R"(,"tid":1,"ts":)", 10 * i);
      absl::StrAppend(&events, events.empty() ? "" : ",", R"({"ph":"X","name":"n","dur":5,)", row,
                      R"(},{"ph":")", is_end ? "f" : "s", R"(","bp":"e","id":)", i + 1, ",", row,
                      "}");
    }
  }
  // Wherever between a slice and its flow they become too many.
  for (std::size_t held_bytes_max = 400; held_bytes_max < 600; held_bytes_max += 7) {
    SCOPED_TRACE(held_bytes_max);
    const Merged merged =
        Merge({Trace(0, events)}, {.is_packed = false, .held_bytes_max = held_bytes_max});
    EXPECT_EQ(merged.left_out, 0);
    const auto slices = merged.trace.Named("n");
    EXPECT_THAT(slices, SizeIs(2 * kLaunches));
    for (const PerfettoEvent& slice : slices) {
      EXPECT_EQ(slice.flows.size() + slice.ended_flows.size(), 1U);
    }
  }
}

// Kineto numbers "ac2g" and "fwdbwd" on their own: in Chrome's form category, name and id tell a flow.
TEST(PerfettoMerger, FlowsOfOneIdAndTwoNamesAreTwo) {
  std::string events;
  for (const char* slice : {"forward", "launch", "kernel", "backward"}) {
    const std::int64_t at = 10 * static_cast<std::int64_t>(events.size());
    const std::string kind =
        slice == std::string_view("forward") || slice == std::string_view("backward") ? "fwdbwd"
                                                                                      : "ac2g";
    const bool is_begin =
        slice == std::string_view("forward") || slice == std::string_view("launch");
    const std::string row = absl::StrCat(R"("pid":1,"tid":1,"ts":)", at);
    absl::StrAppend(&events, events.empty() ? "" : ",", R"({"ph":"X","dur":5,"name":")", slice,
                    R"(",)", row, R"(},{"ph":")", is_begin ? "s" : "f",
                    R"(","bp":"e","id":5,"cat":")", kind, R"(","name":")", kind, R"(",)", row, "}");
  }
  const Merged merged = Merge({Trace(0, events)});
  const auto begun = [&](const char* name) { return merged.trace.Named(name).at(0).flows; };
  const auto ended = [&](const char* name) { return merged.trace.Named(name).at(0).ended_flows; };
  ASSERT_THAT(begun("forward"), SizeIs(1));
  ASSERT_THAT(begun("launch"), SizeIs(1));
  EXPECT_EQ(begun("forward"), ended("backward"));
  EXPECT_EQ(begun("launch"), ended("kernel"));
  EXPECT_NE(begun("forward"), begun("launch"));
}

TEST(PerfettoMerger, AMergedTraceIsATraceAgain) {
  const std::vector<std::string> ranks = {
      Trace(0, R"({"ph":"X","name":"a","cat":"k","ts":10.5,"dur":4,"pid":1,"tid":2,)"
               R"("args":{"batch":7,"x":0.5,"t":"z","on":false}},)"
               R"({"ph":"X","name":"b","ts":11,"dur":9,"pid":1,"tid":2},)"
               R"({"ph":"i","name":"mark","s":"p","ts":12,"pid":1,"tid":2},)"
               R"({"ph":"C","name":"memory","ts":13,"pid":1,"tid":2,"args":{"used":1.5}},)"
               R"({"ph":"M","name":"process_name","pid":3,"args":{"name":"python"}},)"
               R"({"ph":"X","name":"c","ts":14,"dur":1,"pid":3,"tid":3})")};
  const Merged first = Merge(ranks);
  std::string label = "ep0-ba8-rank0.pftrace";
  MergeInput input;
  input.label = label;
  input.rank = RankOfTraceName(label);
  const auto scanned = ScanTrace(SourceOf(first.bytes));
  ASSERT_TRUE(scanned.ok()) << scanned.status();
  EXPECT_FALSE(scanned->form.is_cut);
  input.origin = scanned->origin;
  const auto plan = PlanMerge({input}, MergeAlignment::kClock);
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::string bytes;
  const auto counts = MergeTraces(
      *plan, [&](const PlacedInput&) { return SourceOf(first.bytes); }, MergeForm::kPerfetto,
      [&](std::string_view piece) {
        bytes += piece;
        return absl::OkStatus();
      });
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->left_out, 0);
  const PerfettoTrace second = PerfettoReading::Read(bytes);
  for (const char* name : {"a", "b", "mark"}) {
    const PerfettoEvent was = first.trace.Named(name).at(0);
    const PerfettoEvent is = second.Named(name).at(0);
    EXPECT_EQ(is.begin_ns, was.begin_ns);
    EXPECT_EQ(is.end_ns, was.end_ns);
    EXPECT_EQ(is.args, was.args);
    EXPECT_EQ(is.category, was.category);
    EXPECT_EQ(second.ProcessOf(is.track), "rank 0");
  }
  EXPECT_NE(second.Named("a").at(0).track, second.Named("b").at(0).track);
  ASSERT_THAT(second.counts, SizeIs(1));
  EXPECT_THAT(second.counts.begin()->second, ElementsAre(std::pair(INT64_C(13'000), 1.5)));
  EXPECT_EQ(second.tracks.at(second.counts.begin()->first).name, "memory used");
  EXPECT_EQ(second.ProcessOf(second.Named("c").at(0).track), "rank 0 · python");
  // Cut anywhere: never a failure, and never more than was there.
  for (std::size_t size = 3; size < first.bytes.size(); ++size) {
    const std::string cut = first.bytes.substr(0, size);
    const auto form = ReadTrace(
        SourceOf(cut), {.event = [](std::string_view) { return absl::OkStatus(); }, .member = {}});
    ASSERT_TRUE(form.ok()) << size << " " << form.status();
    EXPECT_LE(form->event_count, scanned->form.event_count);
  }
}

// What a training loop and PyTorch's profiler write, as bytes of the merge in JSON beside those in Perfetto's form.
TEST(PerfettoMerger, AFifthOfTheBytesOfJson) {
  std::string loop, native;
  for (int i = 0; i < 5000; ++i) {
    absl::StrAppend(&loop, i == 0 ? "" : ",",
                    R"({"ph":"X","name":"event/batch_forward","cat":"event","ts":)", i * 31 + i % 7,
                    ".", 100 + i % 900, R"(,"dur":)", 12 + i % 13,
                    R"(.125,"pid":0,"tid":4711,"args":{"epoch":0,"batch":)", i / 18, "}}");
    absl::StrAppend(&native, i == 0 ? "" : ",",
                    R"({"ph":"X","cat":"cpu_op","name":"aten::layer_norm_)", i % 97,
                    R"(","pid":4711,"tid":)", 4711 + i % 4, R"(,"ts":)", i * 3, ".", 100 + i % 900,
                    R"(,"dur":2.125,"args":{"External id":)", i,
                    R"(,"Record function id":0,"Ev Idx":)", i, "}}");
  }
  for (const std::string& events : {loop, native}) {
    const std::vector<std::string> texts = {Trace(0, events)};
    const MergePlan plan = PlanOf(texts);
    std::map<MergeForm, std::size_t> sizes;
    for (const MergeForm form : {MergeForm::kChrome, MergeForm::kPerfetto}) {
      ASSERT_TRUE(MergeTraces(
                      plan, [&](const PlacedInput&) { return SourceOf(texts[0]); }, form,
                      [&](std::string_view piece) {
                        sizes[form] += piece.size();
                        return absl::OkStatus();
                      })
                      .ok());
    }
    EXPECT_LE(sizes[MergeForm::kPerfetto] * 5, sizes[MergeForm::kChrome]);
  }
}

}  // namespace
}  // namespace stepwell
