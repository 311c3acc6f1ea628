#include "client/agent/rank_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "tests/unit/base/trace/perfetto_reading.h"

namespace stepwell::agent {
namespace {

using stepwell::testing::PerfettoEvent;
using stepwell::testing::PerfettoReading;
using stepwell::testing::PerfettoTrace;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::int64_t kBase = 1'700'000'000'000'000'000;

// Each step takes 100 ns and has one scope.
class RankTraceTest : public ::testing::Test {
 protected:
  RankTraceTest() {
    std::string made = ::testing::TempDir() + "rank-trace-XXXXXX";
    folder_ = mkdtemp(made.data());
    directory_ = folder_;
  }
  ~RankTraceTest() override { std::filesystem::remove_all(folder_); }

  RankTrace Make(int cycle_steps, int kept_max = 0,
                 std::int64_t file_bytes_max = TraceFile::kBytesMax) {
    WriterIdentity identity;
    identity.rank = 3;
    identity.opened_time_us = kBase / 1000;
    identity.tracing = {
        .directory = directory_, .kept_max = kept_max, .uploads = true, .cycle_steps = cycle_steps};
    return RankTrace(identity, {.machine = "node-a"},
                     {.begin = [this](const TraceJob&) -> RankTrace::Forget {
                        if (!is_noted_) return {};
                        return [this] { ++forgotten_; };
                      },
                      .leave =
                          [this](const TraceJob& job) {
                            left_.push_back(job);
                            names_as_left_ = Names();
                            return may_leave_;
                          }},
                     file_bytes_max);
  }
  static std::int64_t Begin(std::int32_t batch) { return kBase + 100 * batch; }
  static void Step(RankTrace& trace, std::int32_t batch) {
    trace.EnterThread({.worker = -1, .index = 0, .id = 41});
    trace.AddSpan("forward", Begin(batch) + 10, Begin(batch) + 30, batch);
    trace.AddStep(Begin(batch), Begin(batch) + 100, batch);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder_)) {
      names.push_back(each.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  PerfettoTrace Read(const std::string& name) const {
    std::stringstream bytes;
    bytes << std::ifstream(folder_ + "/" + name, std::ios::binary).rdbuf();
    return PerfettoReading::Read(bytes.str());
  }
  std::vector<std::string> BatchesOf(const std::string& file, const std::string& name) const {
    std::vector<std::string> batches;
    for (const PerfettoEvent& event : Read(file).Named(name)) {
      batches.push_back(event.args.contains("batch") ? event.args.at("batch") : "none");
    }
    return batches;
  }

  // All that a training tells, for long; what is held for it at most.
  static std::size_t RecordForLong(RankTrace& trace) {
    std::size_t held_max = 0;
    for (int batch = 0; batch < 2000; ++batch) {
      Step(trace, batch);
      trace.AddInstant("moment", Begin(batch) + 5, batch);
      trace.AddValue("loss", "1", Begin(batch) + 6, batch);
      trace.AddSystemMetric("cpu_util_process", "percent", Begin(batch) + 7, batch);
      held_max = std::max(held_max, trace.held_bytes());
      trace.Flush();
    }
    return held_max;
  }

  std::string folder_;
  std::string directory_;  // in which it records
  std::vector<TraceJob> left_;
  std::vector<std::string> names_as_left_;
  absl::Status may_leave_;
  bool is_noted_ = true;
  int forgotten_ = 0;
};

// An agent that is killed at any moment leaves word of it: the next one finds its old name, or a note of the new one.
TEST_F(RankTraceTest, AFileIsNotedBeforeItLosesItsOldName) {
  for (const bool is_noted : {true, false}) {
    is_noted_ = is_noted;
    for (const bool is_left : {true, false}) {
      may_leave_ = is_left ? absl::OkStatus() : absl::ResourceExhaustedError("the disk is full");
      forgotten_ = 0;
      {
        RankTrace trace = Make(0);
        Step(trace, 0);
        trace.Finish();
      }
      EXPECT_THAT(names_as_left_,
                  ElementsAre("ep0-ba1-rank3.pftrace", "recording-rank3-0.pftrace"));
      // Where nobody would look for it the old one goes.
      const bool stays = is_noted && !is_left;
      EXPECT_EQ(Names().size(), stays ? 2U : 1U);
      EXPECT_EQ(forgotten_, is_noted && is_left ? 1 : 0);
      for (const std::string& name : Names()) std::filesystem::remove(folder_ + "/" + name);
    }
  }
}

TEST_F(RankTraceTest, ARunIsOneFile) {
  RankTrace trace = Make(0);
  for (int batch = 0; batch < 25; ++batch) {
    Step(trace, batch);
    trace.Flush();
  }
  EXPECT_THAT(Names(), ElementsAre("recording-rank3-0.pftrace"));
  trace.Finish();
  EXPECT_THAT(Names(), ElementsAre("ep0-ba25-rank3.pftrace"));
}

// A training that resumed at batch 8: its first file ends where those of others do.
TEST_F(RankTraceTest, ACycleEndsWithTheSameBatchesOfEachRankAndIsWhole) {
  RankTrace trace = Make(10);
  trace.SetPid(41);
  trace.EnterThread({.worker = -1, .index = 0, .id = 41});
  trace.AddValue("epoch", "", Begin(8), 2);
  for (int batch = 8; batch < 25; ++batch) {
    Step(trace, batch);
    // A worker counts by itself, and ends no file.
    trace.EnterThread({.worker = 0, .index = 0, .id = 50});
    trace.AddStep(Begin(batch) + 40, Begin(batch) + 50, 99);
    // Drained behind the step in which it was.
    trace.EnterThread({.worker = -1, .index = 1, .id = 42});
    trace.AddSpan("beside", Begin(batch) + 60, Begin(batch) + 130, -1);
    trace.AddInstant("moment", Begin(batch) + 70, -1);
    trace.Flush();
  }
  EXPECT_THAT(Names(), ElementsAre("ep2-ba10-rank3.pftrace", "ep2-ba20-rank3.pftrace",
                                   "recording-rank3-0.pftrace"));
  trace.Finish();
  EXPECT_THAT(Names(), ElementsAre("ep2-ba10-rank3.pftrace", "ep2-ba20-rank3.pftrace",
                                   "ep2-ba25-rank3.pftrace"));
  EXPECT_THAT(BatchesOf("ep2-ba10-rank3.pftrace", "forward"), ElementsAre("8", "9"));
  EXPECT_THAT(BatchesOf("ep2-ba25-rank3.pftrace", "forward"),
              ElementsAre("20", "21", "22", "23", "24"));
  for (const char* of_other_thread : {"beside", "moment"}) {
    EXPECT_THAT(BatchesOf("ep2-ba10-rank3.pftrace", of_other_thread), SizeIs(2));
    EXPECT_THAT(BatchesOf("ep2-ba20-rank3.pftrace", of_other_thread), SizeIs(10));
  }
  const PerfettoEvent last = Read("ep2-ba25-rank3.pftrace").Named("forward").at(4);
  EXPECT_EQ(last.args.at("epoch"), "2") << "as it was recorded before this file";
  EXPECT_EQ(last.args.at("thread"), "41");
  ASSERT_THAT(left_, SizeIs(3));
  EXPECT_EQ(left_[1].first_batch, 10);
  EXPECT_EQ(left_[1].last_batch, 19);
  EXPECT_EQ(left_[1].epoch, 2);
  EXPECT_EQ(left_[1].path, folder_ + "/ep2-ba20-rank3.pftrace");
}

// As after a drain of long: more than one cycle ends before anything is flushed.
TEST_F(RankTraceTest, CyclesThatEndAtOnceAreFilesAllTheSame) {
  RankTrace trace = Make(10, 2);
  for (int batch = 0; batch < 35; ++batch) Step(trace, batch);
  trace.Finish();
  EXPECT_THAT(Names(), SizeIs(2)) << "the newest";
  EXPECT_THAT(BatchesOf("ep0-ba35-rank3.pftrace", "step"), SizeIs(5));
  EXPECT_THAT(left_, SizeIs(4));
}

TEST_F(RankTraceTest, NothingButACycleIsNoFurtherFile) {
  RankTrace trace = Make(10, 1);
  for (int batch = 0; batch < 10; ++batch) Step(trace, batch);
  trace.AddSpan("dataloader_next", Begin(10), Begin(11), -1);  // the loader's end
  trace.AddSystemMetric("memory_process_resident", "bytes", Begin(11), 5e9);
  trace.AddValue("loss", "1", Begin(11), 0.5);
  for (int drain = 0; drain < 5; ++drain) trace.Flush();
  trace.AddSpan("evaluate", Begin(20), Begin(30), -1);
  trace.AddInstant("checkpoint", Begin(30), -1);
  trace.Finish();
  ASSERT_THAT(Names(), ElementsAre("ep0-ba10-rank3.pftrace")) << "and it is the one that is kept";
  for (const char* name : {"dataloader_next", "evaluate", "checkpoint"}) {
    EXPECT_THAT(BatchesOf("ep0-ba10-rank3.pftrace", name), ElementsAre("none")) << name;
  }
  EXPECT_THAT(Read("ep0-ba10-rank3.pftrace").counts, SizeIs(2));
  ASSERT_THAT(left_, SizeIs(1));
  EXPECT_EQ(left_[0].last_batch, 9);
}

// A step's own events come once it is over: what others did meanwhile waits for that.
TEST_F(RankTraceTest, WhatOthersDidWithinTheNextCyclesFirstStepIsInTheNextFile) {
  RankTrace trace = Make(10);
  for (int batch = 0; batch < 10; ++batch) Step(trace, batch);
  const SpanThread loop = {.worker = -1, .index = 0, .id = 41};
  const SpanThread worker = {.worker = 0, .index = 0, .id = 50};
  const SpanThread beside = {.worker = -1, .index = 1, .id = 42};
  trace.EnterThread(loop);
  trace.AddSpan("evaluate", Begin(10), Begin(11), -1);
  trace.EnterThread(worker);
  trace.AddSpan("load", Begin(10) + 50, Begin(11) - 10, 3);  // within the evaluation
  trace.Flush();
  trace.EnterThread(worker);
  trace.AddSpan("load", Begin(11) + 10, Begin(11) + 20, 4);  // within the step that follows
  trace.EnterThread(beside);
  trace.AddInstant("moment", Begin(11) + 30, -1);
  trace.AddSystemMetric("cpu_util_process", "percent", Begin(11) + 40, 50);
  for (int drain = 0; drain < 5; ++drain) trace.Flush();
  trace.EnterThread(loop);
  trace.AddStep(Begin(11), Begin(12), 10);
  trace.Finish();
  const std::string first = "ep0-ba10-rank3.pftrace", second = "ep0-ba11-rank3.pftrace";
  ASSERT_THAT(Names(), ElementsAre(first, second));
  EXPECT_THAT(BatchesOf(first, "load"), ElementsAre("3"));
  EXPECT_THAT(BatchesOf(second, "load"), ElementsAre("4"));
  EXPECT_THAT(BatchesOf(second, "moment"), ElementsAre("none"));
  EXPECT_THAT(BatchesOf(second, "step"), ElementsAre("10"));
  EXPECT_THAT(Read(first).counts, IsEmpty());
  EXPECT_THAT(Read(second).counts, SizeIs(1));
}

// As of an agent that was stopped for a while: another thread is drained when several cycles are over.
TEST_F(RankTraceTest, OfCyclesThatEndAtOnceEachHasWhatOthersDidInIt) {
  RankTrace trace = Make(10);
  for (int batch = 0; batch < 35; ++batch) Step(trace, batch);
  trace.Flush(/*is_drained=*/false);
  trace.Flush(/*is_drained=*/false);
  trace.EnterThread({.worker = -1, .index = 1, .id = 42});
  for (int batch = 0; batch < 35; ++batch) {
    trace.AddSpan("beside", Begin(batch) + 5, Begin(batch) + 15, -1);
  }
  trace.Finish();
  for (const auto& [batch, count] : {std::pair(10, 10), {20, 10}, {30, 10}, {35, 5}}) {
    EXPECT_THAT(BatchesOf(absl::StrCat("ep0-ba", batch, "-rank3.pftrace"), "beside"), SizeIs(count))
        << batch;
  }
}

// Another agent goes on where one was killed, behind the last step: that is no cycle, and takes no cycle's place.
TEST_F(RankTraceTest, AFileWithoutAStepTakesNobodysPlace) {
  {
    RankTrace first = Make(10, 1);
    for (int batch = 0; batch < 10; ++batch) Step(first, batch);
    first.Finish();
  }
  RankTrace next = Make(10, 1);
  next.EnterThread({.worker = -1, .index = 0, .id = 41});
  next.AddSpan("evaluate", Begin(10), Begin(11), -1);
  next.Finish();
  EXPECT_THAT(Names(), ElementsAre("ep0-ba0-rank3.pftrace", "ep0-ba10-rank3.pftrace"));
  RankTrace last = Make(10, 1);
  for (int batch = 10; batch < 20; ++batch) Step(last, batch);
  last.Finish();
  EXPECT_THAT(Names(), ElementsAre("ep0-ba0-rank3.pftrace", "ep0-ba20-rank3.pftrace"));
  RankTrace values = Make(10, 1);
  values.AddValue("loss", "1", Begin(30), 0.5);
  values.Finish();
  EXPECT_THAT(Names(), SizeIs(2)) << "one without a step, the newest";
}

// Drained before the thread whose steps they are, or behind it, in whichever order.
TEST_F(RankTraceTest, WhatOthersDidBetweenTwoCyclesGoesByItsBeginWheneverItIsTold) {
  for (const bool is_late : {false, true}) {
    SCOPED_TRACE(is_late);
    RankTrace trace = Make(10);
    const SpanThread loop = {.worker = -1, .index = 0, .id = 41};
    const auto load = [&] {
      trace.EnterThread({.worker = 0, .index = 0, .id = 50});
      trace.AddSpan("load", Begin(10) + 50, Begin(11) + 50, 3);
      trace.AddSpan("load", Begin(11) + 10, Begin(11) + 50, 4);
    };
    for (int batch = 0; batch < 10; ++batch) Step(trace, batch);
    if (!is_late) load();
    trace.EnterThread(loop);
    trace.AddSpan("evaluate", Begin(10), Begin(11), -1);
    trace.AddStep(Begin(11), Begin(12), 10);
    if (is_late) load();
    trace.Finish();
    const std::string suffix = is_late ? "-rank3.2.pftrace" : "-rank3.pftrace";
    EXPECT_THAT(BatchesOf("ep0-ba10" + suffix, "load"), ElementsAre("3"));
    EXPECT_THAT(BatchesOf("ep0-ba11" + suffix, "load"), ElementsAre("4"));
  }
}

// A scope that was entered before a step and left within it, and those of a step with so many that they are told before it
// ends: both are told without a batch, and move no step.
TEST_F(RankTraceTest, WhatOverlapsACyclesFirstStepMovesItIntoNoOtherFile) {
  const SpanThread loop = {.worker = -1, .index = 0, .id = 41};
  for (const bool is_folded : {false, true}) {
    SCOPED_TRACE(is_folded);
    left_.clear();
    RankTrace trace = Make(10);
    for (int batch = 0; batch < 30; ++batch) {
      const std::int64_t begin = Begin(2 * batch);  // as long again lies between two
      trace.EnterThread(loop);
      trace.AddSpan("overlapping", begin + (is_folded ? 10 : -5), begin + 60, -1);
      trace.EnterThread({.worker = -1, .index = 1, .id = 42});
      trace.AddSpan("beside", begin + 5, begin + 10, -1);
      trace.AddSpan("beside", begin + 30, begin + 80, -1);
      trace.Flush();
      trace.EnterThread(loop);
      trace.AddSpan("forward", begin + 20, begin + 30, batch);
      trace.AddSpan("backward", begin + 65, begin + 90, batch);
      trace.AddStep(begin, begin + 100, batch);
    }
    trace.Finish();
    ASSERT_THAT(left_, SizeIs(3));
    // Of what is told too early nobody knows that it was within a step, so that what began before it counts as before, too.
    const int early = is_folded ? 1 : 0;
    for (int at = 0; at < 3; ++at) {
      EXPECT_EQ(left_[at].first_batch, 10 * at);
      EXPECT_EQ(left_[at].last_batch, 10 * at + 9);
      const std::string name = std::filesystem::path(left_[at].path).filename();
      EXPECT_TRUE(name.starts_with(absl::StrCat("ep0-ba", 10 * at + 10, "-rank3"))) << name;
      for (const char* scope : {"step", "forward", "backward"}) {
        EXPECT_THAT(BatchesOf(name, scope), SizeIs(10)) << scope << " of " << name;
      }
      const int more = early * ((at < 2 ? 1 : 0) - (at > 0 ? 1 : 0));
      EXPECT_THAT(BatchesOf(name, "beside"), SizeIs(20 + more)) << name;
    }
  }
}

// As of a resume right before a cycle's end: its one step ends it, whatever overlaps it.
TEST_F(RankTraceTest, ACyclesOnlyStepEndsIt) {
  RankTrace trace = Make(10);
  for (int batch = 0; batch < 10; ++batch) Step(trace, batch);
  trace.AddSpan("overlapping", Begin(19) - 5, Begin(19) + 60, -1);
  Step(trace, 19);
  Step(trace, 20);
  trace.Finish();
  EXPECT_THAT(Names(), ElementsAre("ep0-ba10-rank3.pftrace", "ep0-ba20-rank3.pftrace",
                                   "ep0-ba21-rank3.pftrace"));
}

// Beside a long evaluation whose thread tells nothing meanwhile.
TEST_F(RankTraceTest, WhatIsNoLongerHeldIsInTheCycleBefore) {
  RankTrace trace = Make(10);
  for (int batch = 0; batch < 10; ++batch) Step(trace, batch);
  trace.EnterThread({.worker = 0, .index = 0, .id = 50});
  constexpr int kLoads = UndecidedEvents::kMax + 100;
  for (int at = 20; at < 20 + kLoads; ++at) trace.AddSpan("load", Begin(at), Begin(at) + 50, 3);
  trace.EnterThread({.worker = -1, .index = 0, .id = 41});
  trace.AddStep(Begin(10), Begin(11), 10);
  trace.Finish();
  EXPECT_THAT(BatchesOf("ep0-ba10-rank3.pftrace", "load"), SizeIs(100));
  EXPECT_THAT(BatchesOf("ep0-ba11-rank3.pftrace", "load"), SizeIs(UndecidedEvents::kMax));
}

// Who measures no span may record all the same.
TEST_F(RankTraceTest, ValuesAloneAreATrace) {
  RankTrace trace = Make(0);
  std::size_t held_max = 0;
  for (int i = 0; i < 10'000; ++i) {
    trace.AddValue("loss", "1", Begin(i), 0.5);
    trace.Flush();
    held_max = std::max(held_max, trace.held_bytes());
  }
  EXPECT_LT(held_max, 10'000U);
  trace.Finish();
  ASSERT_THAT(Names(), SizeIs(1));
  EXPECT_THAT(Read(Names()[0]).counts.begin()->second, SizeIs(10'000));
}

// As epochs that are cycles, with an evaluation in between: it belongs to the epoch that it followed, the next one's number
// to the next.
TEST_F(RankTraceTest, WhatIsBetweenTwoCyclesBelongsToTheOneBefore) {
  RankTrace trace = Make(10);
  for (const int epoch : {0, 1}) {
    trace.EnterThread({.worker = -1, .index = 0, .id = 41});
    trace.AddValue("epoch", "", Begin(11 * epoch), epoch);
    for (int batch = 10 * epoch; batch < 10 * epoch + 10; ++batch) {
      trace.AddStep(Begin(batch + epoch), Begin(batch + epoch + 1), batch);
      trace.Flush();
    }
    EXPECT_THAT(Names(), SizeIs(epoch + 1));
    // Workers go on meanwhile, and count for themselves.
    trace.EnterThread({.worker = 0, .index = 0, .id = 50});
    trace.AddStep(Begin(10 + 11 * epoch), Begin(10 + 11 * epoch) + 20, 99);
    trace.EnterThread({.worker = -1, .index = 0, .id = 41});
    trace.AddSpan("evaluate", Begin(10 + 11 * epoch), Begin(11 + 11 * epoch), -1);
    for (int drain = 0; drain < 5; ++drain) trace.Flush();
  }
  trace.Finish();
  EXPECT_THAT(Names(), ElementsAre("ep0-ba10-rank3.pftrace", "ep1-ba20-rank3.pftrace"));
  for (const int epoch : {0, 1}) {
    const std::string name = absl::StrCat("ep", epoch, "-ba", 10 * epoch + 10, "-rank3.pftrace");
    const auto evaluations = Read(name).Named("evaluate");
    ASSERT_THAT(evaluations, SizeIs(1)) << name;
    EXPECT_EQ(evaluations[0].args.at("epoch"), std::to_string(epoch));
    for (const PerfettoEvent& step : Read(name).Named("step")) {
      EXPECT_EQ(step.args.at("epoch"), std::to_string(epoch)) << name;
    }
  }
  ASSERT_THAT(left_, SizeIs(2));
  EXPECT_EQ(left_[0].epoch, 0);
}

TEST_F(RankTraceTest, WhatTheProcessUsedIsACounterWhileItRecords) {
  RankTrace trace = Make(0);
  trace.AddSystemMetric("memory_process_resident", "bytes", Begin(0), 4e9);
  trace.Flush();
  EXPECT_THAT(Names(), IsEmpty()) << "before any span";
  Step(trace, 0);
  trace.AddSystemMetric("memory_process_resident", "bytes", Begin(1), 5e9);
  trace.Finish();
  const PerfettoTrace read = Read("ep0-ba1-rank3.pftrace");
  ASSERT_THAT(read.counts, SizeIs(1));
  const auto& [track, counts] = *read.counts.begin();
  EXPECT_EQ(read.tracks.at(track).name, "memory_process_resident");
  EXPECT_EQ(read.tracks.at(track).unit, "bytes");
  EXPECT_EQ(read.ProcessOf(track), "training, rank 3");
  EXPECT_THAT(counts, ElementsAre(std::pair(Begin(1), 5e9)));
}

TEST_F(RankTraceTest, AFileThatIsFullHoldsNothingMore) {
  RankTrace trace = Make(0, 0, 10'000);
  EXPECT_LT(RecordForLong(trace), 4096U);
  Step(trace, 2000);
  EXPECT_EQ(trace.held_bytes(), 0U);
  trace.Finish();
  EXPECT_LE(std::filesystem::file_size(folder_ + "/ep0-ba2001-rank3.pftrace"), 10'000U);
  const std::vector<std::string> batches = BatchesOf("ep0-ba2001-rank3.pftrace", "step");
  ASSERT_GT(batches.size(), 10U) << "what came before is there";
  EXPECT_EQ(batches.back(), absl::StrCat(batches.size() - 1));
  EXPECT_THAT(left_, SizeIs(1));
}

TEST_F(RankTraceTest, WhereNothingCanBeWrittenNothingIsHeld) {
  directory_ = folder_ + "/file/traces";
  std::ofstream(folder_ + "/file") << "no directory";
  RankTrace trace = Make(0);
  EXPECT_LT(RecordForLong(trace), 4096U);
  Step(trace, 2000);
  EXPECT_EQ(trace.held_bytes(), 0U);
  trace.Finish();
  EXPECT_THAT(Names(), ElementsAre("file"));
  EXPECT_THAT(left_, IsEmpty());
}

// It costs its own cycle: the next one begins where it would have, and knows what was recorded as the epoch.
TEST_F(RankTraceTest, ACycleWhoseFileIsFullEndsWithItsLastBatchAllTheSame) {
  RankTrace trace = Make(10, 0, 700);
  for (int batch = 0; batch < 25; ++batch) {
    Step(trace, batch);
    if (batch == 8) trace.AddValue("epoch", "", Begin(8) + 1, 4);  // it is full by then
    trace.Flush();
  }
  trace.Finish();
  EXPECT_THAT(Names(), ElementsAre("ep4-ba10-rank3.pftrace", "ep4-ba20-rank3.pftrace",
                                   "ep4-ba25-rank3.pftrace"));
  const std::vector<std::string> batches = BatchesOf("ep4-ba20-rank3.pftrace", "step");
  ASSERT_GE(batches.size(), 1U);
  ASSERT_LT(batches.size(), 10U) << "it was full";
  EXPECT_EQ(batches.front(), "10");
}

}  // namespace
}  // namespace stepwell::agent
