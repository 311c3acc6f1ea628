#include "client/agent/step_aggregator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

using spool::Event;
using spool::EventKind;
using ::testing::ElementsAreArray;

// Writes each sample as one line of text.
class TextSink final : public SampleSink {
 public:
  void OnStep(const StepTotals& step) override {
    std::string line =
        absl::StrCat("step t=", step.start_ns, " d=", step.duration_ns, " b=", step.batch);
    for (const PathTotal& path : step.paths) {
      absl::StrAppend(&line, " ", path.path, ":", path.total_ns, "/", path.count);
    }
    lines.push_back(line);
  }
  void OnOccurrence(std::uint32_t path, std::uint64_t start_ns, std::uint64_t ns) override {
    lines.push_back(absl::StrCat("once ", path, " t=", start_ns, " d=", ns));
  }
  void OnRecord(std::uint32_t series, std::uint64_t time_ns, std::int32_t batch,
                double value) override {
    lines.push_back(absl::StrCat("record ", series, " t=", time_ns, " b=", batch, " v=", value));
  }
  void OnRecordAt(std::uint32_t series, std::int64_t time_us, std::int32_t batch,
                  double value) override {
    lines.push_back(absl::StrCat("at ", series, " us=", time_us, " b=", batch, " v=", value));
  }
  void OnInstant(std::uint32_t path, std::uint64_t time_ns, std::int32_t batch) override {
    lines.push_back(absl::StrCat("instant ", path, " t=", time_ns, " b=", batch));
  }
  std::vector<std::string> lines;
};

Event Scope(std::uint32_t path, std::uint64_t start, std::uint64_t ns,
            std::uint8_t flags = spool::kInStep) {
  return {start, ns, path, spool::kNoBatch, EventKind::kScope, flags, 0, 0};
}
Event Record(std::uint32_t series, std::uint64_t time, double value,
             std::uint8_t flags = spool::kInStep, std::int32_t batch = spool::kBatchOfStep) {
  return {time, std::bit_cast<std::uint64_t>(value), series, batch, EventKind::kRecord, flags, 0,
          0};
}
Event RecordAt(std::uint32_t series, std::uint64_t us, double value, std::int32_t batch) {
  return {us, std::bit_cast<std::uint64_t>(value), series, batch, EventKind::kRecordAt, 0, 0, 0};
}
Event Instant(std::uint32_t path, std::uint64_t time, std::uint8_t flags = spool::kInStep) {
  return {time, 0, path, spool::kNoBatch, EventKind::kInstant, flags, 0, 0};
}
Event Begin(std::uint64_t time) { return {time, 0, 0, -1, EventKind::kStepBegin, 0, 0, 0}; }
Event End(std::uint64_t start, std::uint64_t ns, std::int32_t batch) {
  return {start, ns, 0, batch, EventKind::kStepEnd, 0, 0, 0};
}

struct Row {
  const char* name;
  std::vector<Event> events;
  bool ends = false;
  std::vector<std::string> lines;
  bool decided = true;
};

const Row kRows[] = {
    {"one step, one scope",
     {Begin(100), Scope(1, 110, 5), End(100, 50, 0)},
     false,
     {"step t=100 d=50 b=0 1:5/1"}},
    {"an instant has the batch of its step, and is in none of its totals",
     {Instant(9, 90, 0), Begin(100), Instant(9, 110), End(100, 50, 3), Begin(200), Instant(9, 205),
      Begin(210), Instant(9, 220)},
     true,
     {"instant 9 t=90 b=-1", "instant 9 t=110 b=3", "step t=100 d=50 b=3", "instant 9 t=205 b=-1",
      "instant 9 t=220 b=-1"}},
    {"nested scopes are paths of their own",
     {Begin(0), Scope(2, 12, 3), Scope(1, 10, 9), End(0, 30, 4)},
     false,
     {"step t=0 d=30 b=4 1:9/1 2:3/1"}},
    {"several occurrences add up",
     {Begin(0), Scope(1, 1, 2), Scope(1, 5, 3), Scope(1, 9, 4), End(0, 20, 1)},
     false,
     {"step t=0 d=20 b=1 1:9/3"}},
    {"a step without scopes is still a tick",
     {Begin(0), End(0, 7, 0), End(7, 8, 1)},
     false,
     {"step t=0 d=7 b=0", "step t=7 d=8 b=1"}},
    {"each step has its own totals",
     {Begin(0), Scope(1, 1, 2), End(0, 10, 0), Scope(1, 11, 6), End(10, 10, 1)},
     false,
     {"step t=0 d=10 b=0 1:2/1", "step t=10 d=10 b=1 1:6/1"}},
    {"a record in a step gets its batch and keeps its time",
     {Begin(0), Record(7, 3, 0.5), End(0, 10, 12)},
     false,
     {"record 7 t=3 b=12 v=0.5", "step t=0 d=10 b=12"}},
    {"outside a step each occurrence stands alone",
     {Scope(1, 1, 2, 0), Scope(1, 4, 2, 0)},
     false,
     {"once 1 t=1 d=2", "once 1 t=4 d=2"}},
    {"a record outside a step has the batch it was given",
     {Record(7, 3, 1, 0, 5), Record(7, 4, 2, 0, -1)},
     false,
     {"record 7 t=3 b=5 v=1", "record 7 t=4 b=-1 v=2"}},
    {"a scope over a step's boundary lies outside",
     {Begin(0), End(0, 10, 0), Scope(3, 5, 8, 0), End(10, 10, 1)},
     false,
     {"step t=0 d=10 b=0", "once 3 t=5 d=8", "step t=10 d=10 b=1"}},
    {"what was kept before a step begins lies outside",
     {Scope(1, 1, 2), Begin(10), Scope(1, 11, 3), End(10, 5, 0)},
     false,
     {"once 1 t=1 d=2", "step t=10 d=5 b=0 1:3/1"}},
    {"events of a step whose end was dropped lie outside the next",
     {Begin(0), Scope(1, 1, 2), Record(7, 2, 1), Scope(1, 12, 3), End(10, 5, 4)},
     false,
     {"once 1 t=1 d=2", "record 7 t=2 b=-1 v=1", "step t=10 d=5 b=4 1:3/1"}},
    {"an open step keeps, and what comes after waits in order",
     {Begin(0), Scope(1, 1, 2), RecordAt(8, 77, 3, 9), Scope(2, 1, 1, 0)},
     false,
     {},
     false},
    {"and leaves in order when it is decided",
     {Begin(0), Scope(1, 1, 2), RecordAt(8, 77, 3, 9), Scope(2, 1, 1, 0), End(0, 9, 0)},
     false,
     {"at 8 us=77 b=9 v=3", "once 2 t=1 d=1", "step t=0 d=9 b=0 1:2/1"}},
    {"at the end of the thread an open step lies outside",
     {Begin(0), Scope(1, 1, 2), Record(7, 3, 1)},
     true,
     {"once 1 t=1 d=2", "record 7 t=3 b=-1 v=1"}},
    {"a hostile batch is none", {End(0, 9, -7)}, false, {"step t=0 d=9 b=-1"}},
};

TEST(StepAggregatorTest, AgentRule02_DecidesWhatBelongsToWhichStep) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    StepAggregator aggregator;
    TextSink sink;
    for (const Event& event : row.events) aggregator.Add(event, sink);
    if (row.ends) aggregator.End(sink);
    EXPECT_THAT(sink.lines, ElementsAreArray(row.lines));
    EXPECT_EQ(aggregator.decided(), row.decided);
  }
}

TEST(StepAggregatorTest, AgentRule02_AFoldedStepGivesTheSameSamplesInAnotherAgent) {
  StepAggregator first;
  TextSink sink;
  first.Add(Begin(0), sink);
  first.Add(Scope(1, 5, 2), sink);
  first.Add(Record(7, 6, 0.25), sink);
  first.Add(Scope(2, 1, 1, 0), sink);
  const std::string state = first.FoldKept(sink);
  EXPECT_EQ(first.kept_count(), 0u);
  EXPECT_FALSE(first.decided());
  EXPECT_THAT(sink.lines, ElementsAreArray({"once 2 t=1 d=1"}));

  StepAggregator second;
  ASSERT_TRUE(second.Restore(state));
  for (StepAggregator* aggregator : {&first, &second}) {
    TextSink rest;
    aggregator->Add(Scope(1, 9, 3), rest);
    aggregator->Add(End(0, 20, 3), rest);
    EXPECT_THAT(rest.lines,
                ElementsAreArray({"record 7 t=6 b=3 v=0.25", "step t=0 d=20 b=3 1:5/2"}));
    EXPECT_TRUE(aggregator->decided());
  }
}

TEST(StepAggregatorTest, AMomentOfAStepThatIsFoldedIsToldOnceWithoutItsBatch) {
  StepAggregator first;
  TextSink sink;
  for (const Event& event : {Begin(0), Scope(1, 5, 2), Instant(4, 6)}) first.Add(event, sink);
  EXPECT_TRUE(sink.lines.empty());
  const std::string state = first.FoldKept(sink);
  EXPECT_THAT(sink.lines, ElementsAreArray({"instant 4 t=6 b=-1"}));

  StepAggregator second;
  ASSERT_TRUE(second.Restore(state));
  for (StepAggregator* aggregator : {&first, &second}) {
    TextSink rest;
    aggregator->Add(Instant(4, 9), rest);
    aggregator->Add(End(0, 20, 3), rest);
    EXPECT_THAT(rest.lines, ElementsAreArray({"instant 4 t=9 b=3", "step t=0 d=20 b=3 1:2/1"}));
  }
}

TEST(StepAggregatorTest, RefusesDamagedState) {
  StepAggregator aggregator;
  EXPECT_FALSE(aggregator.Restore("no state at all"));
  EXPECT_TRUE(aggregator.decided());
}

// However a run of events is cut by folds, what comes out is the same.
TEST(StepAggregatorTest, FoldsAnywhereChangeNothing) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 200; ++round) {
    std::vector<Event> events = {Begin(0)};
    std::uint64_t now = 0;
    for (int step = 0; step < 4; ++step) {
      const std::uint64_t start = now;
      for (std::uint64_t i = random() % 6; i > 0; --i) {
        now += 1 + random() % 5;
        if (random() % 3 == 0) {
          events.push_back(Record(7, now, static_cast<double>(random() % 10)));
        } else {
          events.push_back(Scope(static_cast<std::uint32_t>(1 + random() % 3), now, random() % 9));
        }
      }
      events.push_back(End(start, now - start, step));
    }
    TextSink whole;
    TextSink cut;
    StepAggregator plain;
    StepAggregator folded;
    for (const Event& event : events) {
      plain.Add(event, whole);
      folded.Add(event, cut);
      if (random() % 3 == 0) {
        const std::string state = folded.FoldKept(cut);
        folded = StepAggregator();
        ASSERT_TRUE(folded.Restore(state));
      }
    }
    ASSERT_EQ(whole.lines, cut.lines) << "round " << round;
  }
}

}  // namespace
}  // namespace stepwell::agent
