#include "client/agent/span_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "base/trace/trace_reading.h"
#include "client/agent/trace_file.h"
#include "tests/unit/base/trace/perfetto_reading.h"

namespace stepwell::agent {
namespace {

using stepwell::testing::PerfettoEvent;
using stepwell::testing::PerfettoReading;
using stepwell::testing::PerfettoTrace;
using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr std::int64_t kBase = 1'700'000'000'000'000'000;

struct Recording {
  std::string bytes;
  SpanTrace trace{{.rank = 3, .pid = 4711, .base_time_ns = kBase}, [this](std::string_view packet) {
                    bytes += packet;
                    return absl::OkStatus();
                  }};
  PerfettoTrace Read() { return PerfettoReading::Read(bytes); }
};

TEST(SpanTraceTest, ASpanSaysWhereItWas) {
  Recording recording;
  recording.trace.EnterThread({.worker = -1, .index = 2});
  recording.trace.AddValue("epoch", "1", kBase + 1, 5);
  // Inside out, as scopes close.
  recording.trace.AddSpan("inner", kBase + 10, kBase + 20, 7);
  recording.trace.AddSpan("forward", kBase + 10, kBase + 30, 7);
  recording.trace.AddStep(kBase + 5, kBase + 40, 7);
  ASSERT_TRUE(recording.trace.Flush().ok());
  const PerfettoTrace trace = recording.Read();
  ASSERT_THAT(trace.events, SizeIs(3));
  std::size_t depth = 0;
  for (const char* name : {"step", "forward", "inner"}) {
    const PerfettoEvent event = trace.Named(name).at(0);
    EXPECT_EQ(event.depth, depth++) << name;
    EXPECT_THAT(event.args, ElementsAre(std::pair("batch", "7"), std::pair("epoch", "5"),
                                        std::pair("rank", "3"), std::pair("thread", "0")));
    EXPECT_EQ(trace.tracks.at(event.track).name, "thread 2");
    EXPECT_EQ(trace.ProcessOf(event.track), "training, rank 3");
  }
  EXPECT_EQ(trace.Named("step").at(0).begin_ns, kBase + 5);
  EXPECT_EQ(trace.Named("step").at(0).end_ns, kBase + 40);
  ASSERT_THAT(trace.counts, SizeIs(1));
  EXPECT_EQ(recording.trace.last_batch(), 7);
  EXPECT_EQ(recording.trace.epoch(), 5);
}

// A process that begins threads without end.
TEST(SpanTraceTest, ThreadsBeyondABoundShareARow) {
  Recording recording;
  constexpr std::uint32_t kMore = 3;
  for (std::uint32_t i = 0; i < SpanTrace::kRowsMax + kMore; ++i) {
    recording.trace.EnterThread({.worker = -1, .index = i, .id = i + 1});
    recording.trace.AddSpan(i < SpanTrace::kRowsMax ? "early" : "late", kBase + 10, kBase + 20, -1);
  }
  ASSERT_TRUE(recording.trace.Flush().ok());
  const PerfettoTrace trace = recording.Read();
  EXPECT_THAT(trace.Named("early"), SizeIs(SpanTrace::kRowsMax));
  ASSERT_THAT(trace.Named("late"), SizeIs(kMore)) << "none is lost";
  EXPECT_EQ(trace.tracks.at(trace.Named("late")[0].track).name, "further threads");
}

TEST(SpanTraceTest, AnInstantLiesOnTheRowOfItsThread) {
  Recording recording;
  recording.trace.AddInstant("nobody's", kBase + 1, 7);
  recording.trace.EnterThread({.worker = -1, .index = 2, .id = 4712});
  recording.trace.AddInstant("too early", kBase - 1, 7);
  recording.trace.AddInstant("checkpoint", kBase + 20, 7);
  recording.trace.AddSpan("forward", kBase + 10, kBase + 30, 7);
  ASSERT_TRUE(recording.trace.Flush().ok());
  const PerfettoTrace trace = recording.Read();
  ASSERT_THAT(trace.events, SizeIs(2));
  const PerfettoEvent instant = trace.Named("checkpoint").at(0);
  EXPECT_TRUE(instant.is_instant);
  EXPECT_EQ(instant.begin_ns, kBase + 20);
  EXPECT_EQ(instant.track, trace.Named("forward").at(0).track);
  EXPECT_THAT(instant.args, ElementsAre(std::pair("batch", "7"), std::pair("rank", "3"),
                                        std::pair("thread", "4712")));
}

TEST(SpanTraceTest, AThreadThatSaysSoHasTheKernelsNumberInItsProcess) {
  Recording recording;
  recording.trace.EnterThread({.worker = -1, .index = 7, .id = 0});  // nothing came of it
  recording.trace.EnterThread({.worker = -1, .index = 0, .id = 4711});
  recording.trace.AddSpan("forward", kBase + 10, kBase + 30, 7);
  recording.trace.EnterThread({.worker = 2, .index = 0, .id = 4800});
  recording.trace.AddSpan("load", kBase + 10, kBase + 30, -1);
  recording.trace.SetPid(12);  // too late
  ASSERT_TRUE(recording.trace.Flush().ok());
  const PerfettoTrace trace = recording.Read();
  const PerfettoEvent forward = trace.Named("forward").at(0);
  const auto& main = trace.tracks.at(forward.track);
  EXPECT_TRUE(main.is_thread);
  EXPECT_EQ(main.tid, 4711);
  EXPECT_EQ(main.pid, 4711);
  EXPECT_EQ(main.name, "thread 0");
  EXPECT_EQ(forward.args.at("thread"), "4711");
  EXPECT_EQ(trace.tracks.at(trace.Named("load").at(0).track).tid, 4800);
  EXPECT_THAT(trace.tracks, SizeIs(3)) << "the process and two threads";
}

TEST(SpanTraceTest, HowFarTheMastersClockIsIsReadByAMerge) {
  Recording recording;
  recording.trace.EnterThread({.worker = -1, .index = 0});
  recording.trace.AddSpan("forward", kBase + 10, kBase + 30, 7);
  recording.trace.AddMasterClock({.at_ns = kBase + 40, .ahead_ns = -5000, .error_ns = 70}, "p/t");
  ASSERT_TRUE(recording.trace.Flush().ok());
  const auto scanned =
      ScanTrace([&](const TakeBytes& take) -> absl::Status { return take(recording.bytes); });
  ASSERT_TRUE(scanned.ok()) << scanned.status();
  const MasterClock& clock = scanned->origin.master_clock;
  ASSERT_TRUE(clock.is_known());
  EXPECT_EQ(clock.Within({kBase + 40, kBase + 40}).ahead_ns(), -5000);
  EXPECT_EQ(clock.Within({kBase + 40, kBase + 40}).error_ns(), 70);
  EXPECT_EQ(clock.trial(), "p/t");
  EXPECT_EQ(scanned->origin.first_time_ns, kBase + 10);
}

TEST(SpanTraceTest, ThatTheClockWasSetIsReadByAMerge) {
  Recording recording;
  recording.trace.EnterThread({.worker = -1, .index = 0});
  recording.trace.AddSpan("forward", kBase + 10, kBase + 30, 7);
  recording.trace.AddWallClock(kBase + 40, -7'000'000'000);
  recording.trace.AddWallClock(kBase + 50, 2'000'000'000);
  ASSERT_TRUE(recording.trace.Flush().ok());
  const auto scanned =
      ScanTrace([&](const TakeBytes& take) -> absl::Status { return take(recording.bytes); });
  ASSERT_TRUE(scanned.ok()) << scanned.status();
  EXPECT_EQ(scanned->origin.wall_ahead, (Interval{-7'000'000'000, 2'000'000'000}));
  EXPECT_EQ(scanned->origin.first_time_ns, kBase + 10) << "it is no event";
}

TEST(SpanTraceTest, WhatWasFlushedIsReadableWhereverItWasCut) {
  Recording recording;
  std::vector<std::size_t> ends;
  for (int batch = 0; batch < 50; ++batch) {
    recording.trace.EnterThread({.worker = batch % 3 - 1, .index = 0});
    const std::int64_t begin = kBase + 100 * batch;
    recording.trace.AddSpan("forward", begin + 10, begin + 30, batch);
    recording.trace.AddStep(begin, begin + 90, batch);
    ASSERT_TRUE(recording.trace.Flush().ok());
    ends.push_back(recording.bytes.size());
  }
  const std::string whole = recording.bytes;
  // Around each flush, and in between here and there: each look reads all anew.
  std::set<std::size_t> sizes;
  for (std::size_t size = 0; size < whole.size(); size += 37) sizes.insert(size);
  for (const std::size_t end : ends) sizes.insert({end - 1, end});
  for (const std::size_t size : sizes) {
    recording.bytes = whole.substr(0, size);
    const PerfettoTrace trace = recording.Read();
    const auto flushed =
        static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), size) - ends.begin());
    EXPECT_THAT(trace.Named("step"), SizeIs(flushed)) << size;
    for (const PerfettoEvent& event : trace.events) EXPECT_GE(event.end_ns, event.begin_ns);
  }
}

class TraceFileTest : public ::testing::Test {
 protected:
  TraceFileTest() {
    std::string made = ::testing::TempDir() + "recorded-XXXXXX";
    folder_ = mkdtemp(made.data());
  }
  ~TraceFileTest() override { std::filesystem::remove_all(folder_); }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& each : std::filesystem::directory_iterator(folder_)) {
      names.push_back(each.path().filename());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  std::unique_ptr<TraceFile> Create(std::int64_t bytes_max, int kept_max) {
    auto file = TraceFile::Create(
        {.directory = folder_, .rank = 3, .bytes_max = bytes_max, .kept_max = kept_max});
    EXPECT_TRUE(file.ok()) << file.status();
    return *std::move(file);
  }
  std::string folder_;
};

TEST_F(TraceFileTest, ItsNameIsThatOfItsCycleOnceThatIsOver) {
  const auto first = Create(100, 0);
  EXPECT_TRUE(first->Append("abc").ok());
  const auto second = Create(100, 0);
  EXPECT_THAT(Names(), ElementsAre("recording-rank3-0.pftrace", "recording-rank3-1.pftrace"));
  EXPECT_EQ(*first->Finish({.epoch = 2, .batch = 7}), "ep2-ba8-rank3.pftrace");
  EXPECT_EQ(*second->Finish({.epoch = 2, .batch = 7}), "ep2-ba8-rank3.2.pftrace");
  EXPECT_THAT(Names(), ElementsAre("ep2-ba8-rank3.2.pftrace", "ep2-ba8-rank3.pftrace"));
}

TEST_F(TraceFileTest, ItIsBoundedAndEndsWithAWholePacket) {
  const auto file = Create(10, 0);
  EXPECT_TRUE(file->Append("12345678").ok());
  EXPECT_TRUE(absl::IsResourceExhausted(file->Append("123")));
  EXPECT_TRUE(absl::IsResourceExhausted(file->Append("1"))) << "no packet without those before";
  EXPECT_EQ(file->bytes(), 8);
  EXPECT_EQ(std::filesystem::file_size(folder_ + "/recording-rank3-0.pftrace"), 8u);
}

TEST_F(TraceFileTest, TheNewestOfARankAreKept) {
  std::filesystem::create_directory(folder_ + "/ep0-ba1-rank30.pftrace");
  std::filesystem::create_directory(folder_ + "/ep0-ba1-rank3.json");
  for (int batch = 0; batch < 5; ++batch) {
    const auto file = Create(100, 2);
    const auto name = file->Finish({.epoch = 0, .batch = batch});
    ASSERT_TRUE(name.ok()) << name.status();
    // Their times are told apart by more than a tick of the file system's clock.
    const auto time =
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(10 - batch);
    std::filesystem::last_write_time(folder_ + "/" + *name, time);
  }
  EXPECT_THAT(Names(), ElementsAre("ep0-ba1-rank3.json", "ep0-ba1-rank30.pftrace",
                                   "ep0-ba4-rank3.pftrace", "ep0-ba5-rank3.pftrace"));
}

// Blocks of one flush go one by one: what is in those that were taken is told from what is not.
TEST(SpanTraceTest, WhatIsNotTakenIsCountedAndNotHeld) {
  std::string bytes;
  int takes = 0;
  SpanTrace trace({.rank = 3, .pid = 4711, .base_time_ns = kBase}, [&](std::string_view packet) {
    if (++takes == 3) return absl::ResourceExhaustedError("full");
    bytes += packet;
    return absl::OkStatus();
  });
  trace.EnterThread({.worker = -1, .index = 0});
  trace.AddInstant("moment", kBase + 1, 0);
  trace.AddValue("loss", "1", kBase + 2, 0.5);
  trace.AddSpan("forward", kBase + 3, kBase + 4, 0);
  ASSERT_TRUE(trace.Flush().ok());
  EXPECT_EQ(trace.taken_count(), 3);
  for (int i = 0; i < 3000; ++i) trace.AddSpan("forward", kBase + 10 * i, kBase + 10 * i + 5, i);
  trace.AddInstant("moment", kBase + 5, 0);
  EXPECT_GT(trace.held_bytes(), 100'000U);
  EXPECT_FALSE(trace.Flush().ok());
  ASSERT_EQ(takes, 3);
  EXPECT_TRUE(trace.is_closed());
  EXPECT_EQ(trace.held_bytes(), 0U);
  const PerfettoTrace read = PerfettoReading::Read(bytes);
  const auto spans = static_cast<std::int64_t>(read.Named("forward").size());
  EXPECT_GT(spans, 100);
  EXPECT_EQ(trace.taken_count(), spans + 3) << "two moments and a value";
  EXPECT_EQ(trace.left_out_count(), 3001 - spans);

  trace.AddSpan("forward", kBase + 50'000, kBase + 50'001, 3001);
  trace.AddInstant("moment", kBase + 50'000, 0);
  trace.AddValue("loss", "1", kBase + 50'000, 0.5);
  trace.AddMasterClock({.at_ns = kBase + 50'000, .ahead_ns = 1, .error_ns = 1}, "p/t");
  EXPECT_TRUE(trace.Flush().ok()) << "it was told";
  EXPECT_EQ(takes, 3);
  EXPECT_EQ(trace.held_bytes(), 0U);
  EXPECT_EQ(trace.left_out_count(), 3001 - spans + 3);
}

}  // namespace
}  // namespace stepwell::agent
