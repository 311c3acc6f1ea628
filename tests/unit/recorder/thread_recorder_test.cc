#include "client/recorder/src/thread_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "client/recorder/src/process_writer.h"
#include "tests/unit/recorder/spool_view.h"

namespace stepwell::recorder {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ThreadRecorderTest : public testing::Test {
 protected:
  ThreadRecorderTest() {
    for (const char* name : {"a", "b", "c"}) catalog_.DefineScope({name});
    catalog_.DefineSeries({.group = "training", .name = "loss", .unit = "", .labels = {}});
    process_ = std::make_unique<ProcessWriter>(SpoolWriter::CreateInMemory({}), catalog_, mutex_,
                                               line_, 1);
    thread_ = process_->StartThread(1);
  }

  stepwell_scope Begin(std::uint32_t name) {
    stepwell_scope scope{};
    thread_->BeginScope(scope, name);
    return scope;
  }
  void End(const stepwell_scope& scope) { thread_->EndScope(scope); }
  void Time(std::uint32_t name) { End(Begin(name)); }
  std::uint64_t early_count() { return process_->spool().header().early_count.load(); }
  void SetControl(std::uint32_t control) { process_->spool().header().control.store(control); }

  std::vector<NameView> Names() {
    return ReadNames(
        process_->spool().names().first(process_->spool().header().names_bytes.load()));
  }
  // The events of the thread's first ring, as lines; takes them as an agent would.
  std::vector<std::string> Take() {
    std::vector<std::string> lines;
    for (const spool::Event& event : TakeEvents()) lines.push_back(Shown(Names(), event));
    return lines;
  }
  std::vector<spool::Event> TakeEvents() {
    Ring* ring = FindRing();
    std::vector<spool::Event> events;
    std::uint64_t tail = ring->header().tail.load();
    for (; tail < ring->header().head.load(); ++tail) {
      events.push_back(ring->events()[tail % ring->capacity()]);
    }
    ring->header().tail.store(tail);
    return events;
  }
  Ring* FindRing() { return thread_->current_ring(); }

  static constexpr std::uint32_t kA = 1, kB = 2, kC = 3, kLoss = 1;
  Catalog catalog_;
  std::mutex mutex_;
  GateLine line_;
  std::unique_ptr<ProcessWriter> process_;
  ThreadRecorder* thread_ = nullptr;
};

TEST_F(ThreadRecorderTest, NestsScopesIntoPaths) {
  const auto a = Begin(kA);
  Time(kB);
  const auto c = Begin(kC);
  Time(kB);
  End(c);
  End(a);
  Time(kB);
  EXPECT_THAT(Take(), ElementsAre("scope a/b", "scope a/c/b", "scope a/c", "scope a", "scope b"));
}

TEST_F(ThreadRecorderTest, AnEventHasItsStartAndDuration) {
  const auto a = Begin(kA);
  const auto b = Begin(kB);
  End(b);
  End(a);
  const std::vector<spool::Event> events = TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].depth, 1);
  EXPECT_EQ(events[1].depth, 0);
  EXPECT_LE(events[1].time, events[0].time);
  EXPECT_GE(events[1].time + events[1].value, events[0].time + events[0].value);
}

TEST_F(ThreadRecorderTest, AStepRunsFromEndToEnd) {
  Time(kA);  // before the first step
  thread_->BeginStep();
  Time(kA);
  thread_->Record(kLoss, 0.5);
  thread_->EndStep(-1);
  Time(kB);
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("scope a", "begin", "scope+ a", "record+ training/loss@-2",
                                  "end@0", "scope+ b", "end@1"));
}

TEST_F(ThreadRecorderTest, AnInstantIsOfItsStepAndOfNoScope) {
  thread_->AddInstant(kC);
  thread_->BeginStep();
  const auto a = Begin(kA);
  thread_->AddInstant(kC);
  End(a);
  thread_->EndStep(-1);
  const std::vector<spool::Event> events = TakeEvents();
  std::vector<std::string> lines;
  for (const spool::Event& event : events) lines.push_back(Shown(Names(), event));
  EXPECT_THAT(lines, ElementsAre("instant c", "begin", "instant+ c", "scope+ a", "end@0"));
  EXPECT_GE(events[2].time, events[3].time);
  EXPECT_LE(events[2].time, events[3].time + events[3].value);
}

TEST_F(ThreadRecorderTest, StepsLeaveNoTimeBetweenThem) {
  thread_->BeginStep();
  thread_->EndStep(-1);
  thread_->EndStep(-1);
  const std::vector<spool::Event> events = TakeEvents();
  EXPECT_EQ(events[1].time, events[0].time);
  EXPECT_EQ(events[2].time, events[1].time + events[1].value);
}

TEST_F(ThreadRecorderTest, TheFirstEndOpensTheFirstStep) {
  thread_->EndStep(-1);
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("begin", "end@0"));
}

TEST_F(ThreadRecorderTest, BatchesFollowTheLastOneGiven) {
  thread_->EndStep(41);  // ends nothing, but the next batch follows
  thread_->EndStep(-1);
  thread_->EndStep(7);
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("begin", "end@42", "end@7", "end@8"));
  const std::uint64_t last = process_->spool().header().last_step.load();
  EXPECT_EQ(spool::BatchOfLastStep(last), 8);
  EXPECT_EQ(last >> 32, 3u);
}

TEST_F(ThreadRecorderTest, ABatchNeverOverflows) {
  thread_->EndStep(std::numeric_limits<std::int32_t>::max());
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("begin", "end@2147483647"));
}

TEST_F(ThreadRecorderTest, BeginWithinAStepStartsItAnew) {
  thread_->BeginStep();
  Time(kA);
  thread_->BeginStep();
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("begin", "scope+ a", "begin", "end@0"));
}

TEST_F(ThreadRecorderTest, LeavingAStepPutsWhatItHeldAndWhatComesNextOutsideAny) {
  thread_->BeginStep();
  thread_->EndStep(-1);
  Time(kA);
  const auto b = Begin(kB);
  thread_->LeaveStep();
  thread_->LeaveStep();  // of none
  Time(kC);
  End(b);
  thread_->Record(kLoss, 0.5);
  thread_->BeginStep();
  Time(kA);
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("begin", "end@0", "scope+ a", "begin", "scope c", "scope b",
                                  "record training/loss@-1", "begin", "scope+ a", "end@1"));
}

TEST_F(ThreadRecorderTest, LeavingAStepFollowsTheControl) {
  thread_->BeginStep();
  SetControl(spool::kControlOff);
  thread_->LeaveStep();
  EXPECT_FALSE(process_->is_on());
  SetControl(0);
  thread_->LeaveStep();  // of none: a long evaluation without steps may be switched on again
  EXPECT_TRUE(process_->is_on());
  EXPECT_THAT(Take(), ElementsAre("begin", "begin"));
}

TEST_F(ThreadRecorderTest, ScopesThatTakeTurnsDoNotPileUp) {
  // As a thousand tasks do that overlap in pairs.
  stepwell_scope last = Begin(kA);
  for (int i = 0; i < 1000; ++i) {
    const stepwell_scope next = Begin(kA);
    End(last);
    last = next;
  }
  End(last);
  Time(kB);
  const std::vector<std::string> lines = Take();
  EXPECT_EQ(lines.size(), 1002u);
  EXPECT_EQ(lines.back(), "scope b");
  EXPECT_LE(Names().size(), 5u) << "each path takes room in the log of names";
  EXPECT_EQ(process_->dropped_count(), 0u);
}

TEST_F(ThreadRecorderTest, WhatBeginsAfterAnotherOrderLiesInNothing) {
  const auto a = Begin(kA);
  const auto b = Begin(kB);
  End(a);
  Time(kC);  // b is open still; whether c lies in it is not known
  EXPECT_EQ(thread_->path(), spool::kNoName);
  End(b);
  const auto c = Begin(kC);
  EXPECT_EQ(thread_->path(), c.path);
  Time(kA);
  End(c);
  EXPECT_EQ(thread_->path(), spool::kNoName);
  EXPECT_THAT(Take(), ElementsAre("scope a", "scope c", "scope a/b", "scope c/a", "scope c"));
}

TEST_F(ThreadRecorderTest, AScopeOpenAcrossTheBoundaryStandsAlone) {
  thread_->BeginStep();
  const auto a = Begin(kA);
  const auto b = Begin(kB);
  thread_->EndStep(-1);
  Time(kC);  // its path counts from the boundary
  End(b);
  Time(kC);
  End(a);
  Time(kC);
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("begin", "end@0", "scope+ c", "scope a/b", "scope+ c", "scope a",
                                  "scope+ c", "end@1"));
}

TEST_F(ThreadRecorderTest, OtherOrdersOfEndingHeal) {
  const auto a = Begin(kA);
  const auto b = Begin(kB);
  End(a);
  End(b);
  Time(kC);
  EXPECT_THAT(Take(), ElementsAre("scope a", "scope a/b", "scope c"));
}

TEST_F(ThreadRecorderTest, AScopeOfAnotherThreadStandsAlone) {
  ThreadRecorder* other = process_->StartThread(2);
  stepwell_scope scope{};
  other->BeginScope(scope, kB);
  thread_->BeginStep();
  const auto a = Begin(kA);
  thread_->EndScope(scope);
  Time(kC);
  End(a);
  EXPECT_THAT(Take(), ElementsAre("begin", "scope b", "scope+ a/c", "scope+ a"));
}

TEST_F(ThreadRecorderTest, TooDeepIsDroppedAndCounted) {
  std::vector<stepwell_scope> open;
  for (int i = 0; i < spool::kScopeDepthMax + 3; ++i) open.push_back(Begin(kA));
  for (; !open.empty(); open.pop_back()) {
    if (open.back().path != 0) End(open.back());
  }
  EXPECT_EQ(TakeEvents().size(), static_cast<std::size_t>(spool::kScopeDepthMax));
  EXPECT_EQ(process_->dropped_count(), 3u);
}

TEST_F(ThreadRecorderTest, UnknownNamesAreCountedAndNothingElse) {
  thread_->Record(99, 1);
  thread_->Record(kSeriesCountMax + 99, 1);
  thread_->RecordAt(99, 1, 1, 1);
  EXPECT_EQ(Begin(99).path, 0u);
  EXPECT_THAT(Take(), IsEmpty());
  EXPECT_EQ(process_->dropped_count(), 4u);
}

TEST_F(ThreadRecorderTest, RecordAtKeepsTimeBatchAndBits) {
  thread_->RecordAt(kLoss, 12, -5, -0.0);
  thread_->RecordAt(kLoss, -7, 1'700'000'000'000'000, 1);
  const std::vector<spool::Event> events = TakeEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(static_cast<std::int64_t>(events[0].time), -5);
  EXPECT_EQ(events[0].value, 0x8000000000000000u);
  EXPECT_EQ(events[0].batch, 12);
  EXPECT_EQ(events[1].time, 1'700'000'000'000'000u);
  EXPECT_EQ(events[1].batch, spool::kNoBatch);
}

TEST_F(ThreadRecorderTest, AgentRule12_ControlSwitchesWholeSteps) {
  thread_->BeginStep();
  thread_->EndStep(-1);
  SetControl(spool::kControlOff);
  EXPECT_TRUE(process_->is_on());  // until the step's end
  thread_->EndStep(-1);
  EXPECT_FALSE(process_->is_on());
  thread_->EndStep(-1);  // not recorded, but counted
  SetControl(0);
  thread_->EndStep(-1);
  EXPECT_TRUE(process_->is_on());
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("begin", "end@0", "end@1", "begin", "end@4"));
}

TEST_F(ThreadRecorderTest, AClosedGateIsNotOpenedByControl) {
  thread_->BeginStep();
  line_.word.store(0);
  SetControl(spool::kControlOff);
  thread_->EndStep(-1);
  SetControl(0);
  thread_->EndStep(-1);
  EXPECT_EQ(line_.word.load(), 0u);
}

TEST_F(ThreadRecorderTest, AgentRule01_AFullRingDropsCountsAndMarksItsSteps) {
  thread_->BeginStep();
  const std::uint32_t room = FindRing()->capacity();
  for (std::uint32_t i = 0; i < room + 100; ++i) Time(kA);
  thread_->EndStep(-1);
  const std::uint64_t dropped = process_->dropped_count();
  EXPECT_EQ(dropped, 1 + 100 + RingProducer::kStepReserve);  // BeginStep took one slot, too
  std::vector<std::string> lines = Take();
  EXPECT_EQ(lines.back(), "end@0 lossy");
  Time(kB);
  thread_->EndStep(-1);
  EXPECT_THAT(Take(), ElementsAre("scope+ b", "end@1"));
}

TEST_F(ThreadRecorderTest, AgentRule01_GoesOnInABiggerRingWhenOneWasMade) {
  Ring* first = FindRing();
  std::uint32_t pushed = 0;
  for (; pushed <= first->capacity() / 2; ++pushed) Time(kA);
  EXPECT_TRUE(process_->Maintain());  // filling up: the next one is made
  const std::uint64_t events_wanted = first->capacity() + 1000;
  for (; pushed < events_wanted; ++pushed) Time(kA);
  Ring* second = FindRing();
  ASSERT_NE(second, first);
  EXPECT_EQ(process_->dropped_count(), 0u);
  EXPECT_EQ(first->header().state, spool::kRingSucceeded);
  EXPECT_EQ(first->header().next_ring, second->header().ring);
  EXPECT_EQ(second->header().previous, first->header().ring);
  EXPECT_EQ(second->header().thread, first->header().thread);
  EXPECT_EQ(second->capacity(), 4 * first->capacity());
  EXPECT_EQ(first->header().head + second->header().head, events_wanted);
}

TEST_F(ThreadRecorderTest, AgentRule01_RingsStopGrowingAtTheirLimit) {
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t i = 0; i < FindRing()->capacity(); ++i) Time(kA);
    process_->Maintain();
    Time(kA);
  }
  EXPECT_EQ(FindRing()->capacity() * sizeof(spool::Event), spool::kRingBytesMax);
  EXPECT_GT(process_->dropped_count(), 0u);
}

TEST_F(ThreadRecorderTest, AgentRule01_AProcessHasAShareOfMemoryAndNoMore) {
  const std::size_t threads_max =
      spool::kProcessRingBytesMax / (spool::kRingBytesFirst + spool::kPageBytes);
  std::vector<ThreadRecorder*> threads;
  for (std::size_t i = 1; i < threads_max + 2; ++i) {
    threads.push_back(process_->StartThread(static_cast<std::uint32_t>(i + 1)));
  }
  process_->Maintain();  // each gets one, and none is left to make ahead
  threads[threads_max - 2]->EndStep(-1);
  EXPECT_NE(threads[threads_max - 2]->current_ring(), nullptr);
  ThreadRecorder* late = threads[threads_max - 1];
  ASSERT_EQ(late->current_ring(), nullptr);
  late->EndStep(-1);
  EXPECT_EQ(early_count(), 1u);
  // The room of a thread that ends goes to one that waits.
  process_->EndThread(threads[0]);
  process_->Maintain();
  late->EndStep(-1);
  EXPECT_NE(late->current_ring(), nullptr);
  EXPECT_EQ(late->current_ring()->header().head, 2u);
  EXPECT_EQ(process_->dropped_count(), 0u);
}

TEST_F(ThreadRecorderTest, TheRingMadeAheadGoesToTheNextThread) {
  process_->Maintain();
  ThreadRecorder* second = process_->StartThread(2);
  ASSERT_NE(second->current_ring(), nullptr);
  EXPECT_EQ(second->current_ring()->header().thread, second->thread());
  EXPECT_NE(second->thread(), thread_->thread());
  EXPECT_STRNE(second->current_ring()->header().thread_name, "");
}

TEST_F(ThreadRecorderTest, WhatComesBeforeTheRingIsKeptInOrder) {
  ThreadRecorder* second = process_->StartThread(2);
  ASSERT_EQ(second->current_ring(), nullptr);
  second->BeginStep();
  second->Record(kLoss, 0.5);
  EXPECT_EQ(early_count(), 2u);
  EXPECT_TRUE(process_->Maintain());
  EXPECT_EQ(early_count(), 0u);
  second->EndStep(-1);
  thread_ = second;
  EXPECT_THAT(Take(), ElementsAre("begin", "record+ training/loss@-2", "end@0"));
  EXPECT_EQ(process_->dropped_count(), 0u);
}

TEST_F(ThreadRecorderTest, AThreadMayEndBeforeItsRingIsReady) {
  ThreadRecorder* second = process_->StartThread(2);
  second->Record(kLoss, 0.5);
  process_->EndThread(second);
  EXPECT_EQ(early_count(), 1u);
  process_->Maintain();
  EXPECT_EQ(early_count(), 0u);
  EXPECT_EQ(process_->dropped_count(), 0u);
}

TEST_F(ThreadRecorderTest, ACloseGivesWhatStillWaitsItsRing) {
  ThreadRecorder* lives = process_->StartThread(2);
  ThreadRecorder* ended = process_->StartThread(3);
  lives->Record(kLoss, 0.5);
  ended->Record(kLoss, 0.5);
  process_->EndThread(ended);
  (void)process_->Close(0);
  EXPECT_EQ(early_count(), 0u);
  EXPECT_EQ(process_->dropped_count(), 0u);
}

TEST_F(ThreadRecorderTest, PastItsBoundWhatWaitsForARingIsDroppedAndCounted) {
  ThreadRecorder* second = process_->StartThread(2);
  for (std::uint64_t i = 0; i < kEarlyCountMax + 5; ++i) second->Record(kLoss, 0.5);
  EXPECT_EQ(early_count(), kEarlyCountMax);
  EXPECT_EQ(process_->spool().header().dropped_no_ring, 5u);
  process_->Maintain();
  EXPECT_EQ(early_count(), 0u);
  // The ring is smaller than the bound of all threads.
  EXPECT_EQ(process_->dropped_count(),
            5u + kEarlyCountMax -
                (spool::kRingBytesFirst / sizeof(spool::Event) - RingProducer::kStepReserve));
}

TEST_F(ThreadRecorderTest, ACloseWaitsForTheCallThatIsOnItsWay) {
  thread_->Enter();
  std::atomic<bool> is_closed{false};
  std::thread closing([&] {
    (void)process_->Close(0);
    is_closed = true;
  });
  while (line_.word.load() != Gate::ShutWord(1)) std::this_thread::yield();
  thread_->Record(kLoss, 0.5);
  EXPECT_FALSE(is_closed);
  EXPECT_EQ(process_->spool().header().state, spool::kWriterOpen);
  thread_->Leave();
  closing.join();
  EXPECT_EQ(FindRing()->header().head, 1u);
  EXPECT_EQ(process_->dropped_count(), 0u);
}

TEST_F(ThreadRecorderTest, ACallThatNeverReturnsIsTakenForLost) {
  thread_->Enter();
  (void)process_->Close(0);
  EXPECT_EQ(process_->spool().header().state, spool::kWriterClosed);
  EXPECT_EQ(process_->dropped_count(), 1u);
}

TEST_F(ThreadRecorderTest, WhatComesAfterTheCloseIsCounted) {
  (void)process_->Close(0);
  thread_->CountLate();
  EXPECT_EQ(process_->dropped_count(), 1u);
}

}  // namespace
}  // namespace stepwell::recorder
