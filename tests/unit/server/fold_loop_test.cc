#include "server/fold_loop.h"
#include "base/status_macros.h"
#include "base/steady_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "storage/fold_plan.h"
#include "tests/fakes/stepped_clock.h"

namespace stepwell {
namespace {

constexpr TrialId kTrial = static_cast<TrialId>(1);
constexpr WriterNo kWriter = static_cast<WriterNo>(1);

HeadChunkPtr Chunk(std::uint64_t sequence) {
  auto chunk = std::make_shared<HeadChunk>();
  chunk->trial_id = kTrial;
  chunk->writer_no = kWriter;
  chunk->sequence = sequence;
  chunk->bytes = 1000;
  chunk->sample_count = 1;
  chunk->tables = {{1, {1000}, {-1}, {{static_cast<SeriesNo>(1), {1.0}, {}}}}};
  return chunk;
}

// While one fold is under way, ingest brings as much as it folds.
class BusyStore final : public FoldStore {
 public:
  explicit BusyStore(Heads& heads) : heads_(heads) {}

  absl::StatusOr<FoldResult> Fold(std::int64_t, const std::vector<WriterFold>& folds) override {
    ++fold_count;
    if (!fold_status.ok()) return std::exchange(fold_status, absl::OkStatus());
    if (fold_count > 1000) return absl::InternalError("it never ends");
    FoldResult result;
    for (const WriterFold& fold : folds) {
      for (std::uint64_t i = fold.from_sequence_exclusive; i < fold.to_sequence; ++i) {
        if (is_busy) heads_.Add({Chunk(++newest)});
        ++result.sample_count;
      }
    }
    result.fold_no = static_cast<FoldNo>(fold_count.load());
    result.row_count = row_count;
    return result;
  }
  absl::StatusOr<std::optional<FoldResult>> FoldBulk(std::int64_t epoch,
                                                     const std::vector<WriterFold>& folds,
                                                     std::int32_t) override {
    ++bulk_count;
    if (on_bulk) on_bulk();
    if (!bulk_status.ok()) return bulk_status;
    if (refuses_bulk) return std::nullopt;
    STEPWELL_ASSIGN_OR_RETURN(const FoldResult folded, Fold(epoch, folds));
    return folded;
  }
  absl::StatusOr<MergeResult> Merge(std::int64_t, const MergeLimits&) override {
    ++merge_count;
    if (on_merge) on_merge();
    return MergeResult{.more = merges_for_ever};
  }
  absl::StatusOr<FoldNo> NextFoldNo() override { return FoldNo{1}; }
  absl::Status AttachLeaves(std::int64_t) override { return absl::OkStatus(); }
  absl::Status RecycleJournal(std::int64_t, std::int64_t) override {
    ++recycle_count;
    return absl::OkStatus();
  }
  absl::Status RecycleRecent(std::int64_t) override { return absl::OkStatus(); }

  std::atomic<std::int64_t> row_count = 0;  // of each fold
  bool is_busy = true;
  bool merges_for_ever = false;
  absl::Status fold_status;  // of the next one
  std::function<void()> on_bulk;
  std::function<void()> on_merge;
  absl::Status bulk_status;
  bool refuses_bulk = false;
  std::atomic<int> bulk_count = 0;
  std::atomic<int> fold_count = 0;
  std::atomic<int> merge_count = 0;
  std::atomic<int> recycle_count = 0;
  std::atomic<std::uint64_t> newest = 0;

 private:
  Heads& heads_;
};

// The real clocks; the wall clock may be set.
class SetClock final : public Clock {
 public:
  absl::Time Now() const override { return RealClock::Get().Now() + absl::Seconds(ahead_s.load()); }
  absl::Duration Monotonic() const override { return RealClock::Get().Monotonic(); }
  std::atomic<int> ahead_s = 0;
};

TEST(FoldLoopTest, FoldsGoOnWhereTheWallClockIsSetBack) {
  Heads heads;
  heads.NoteWriter(kTrial, kWriter, 0);
  BusyStore store(heads);
  heads.Add({Chunk(++store.newest)});
  MasterState state;
  state.SetDatabase(absl::OkStatus());
  state.BecomeOwner(1, false);
  SetClock clock;
  FoldLoop loop({.interval = absl::Milliseconds(10), .slice_bytes = 30'000, .merge = {}},
                {store, heads, state, clock, [] { return std::int64_t{0}; }});
  loop.Start();
  clock.ahead_s = -3600;
  for (int round = 0; round < 2; ++round) {
    const int seen = store.fold_count;
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
    while (store.fold_count == seen && !deadline.HasPassed()) std::this_thread::yield();
    EXPECT_GT(store.fold_count, seen) << "round " << round;
  }
  loop.Stop();
}

TEST(FoldLoopTest, AfterAFoldOfManyRowsTheNextComesLater) {
  Heads heads;
  heads.NoteWriter(kTrial, kWriter, 0);
  BusyStore store(heads);
  heads.Add({Chunk(++store.newest)});
  MasterState state;
  state.SetDatabase(absl::OkStatus());
  state.BecomeOwner(1, false);
  testing::SteppedClock clock;
  FoldLoop loop({.interval = absl::Seconds(10), .merge = {}},
                {store, heads, state, clock, [] { return std::int64_t{0}; }});
  loop.Start();
  // Of a trial that has nothing: when the second is answered the thread has done what was due
  // before the first.
  const auto fold_what_is_due = [&] {
    for (int i = 0; i < 2; ++i) {
      const auto folded = loop.FoldNow(TrialId{2}, SteadyTime::Now() + absl::Seconds(20));
      ASSERT_TRUE(folded.ok()) << folded.status();
    }
  };
  struct Row {
    const char* name;
    std::int64_t row_count;
    absl::Duration next;
  };
  const std::vector<Row> rows = {{"few", 1000, absl::Seconds(10)},
                                 {"many", 6000, absl::Seconds(60)},
                                 {"few again", 10, absl::Seconds(10)}};
  absl::Duration next = absl::Seconds(10);  // the first since the start
  int fold_count = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    store.row_count = row.row_count;
    clock.Advance(next - absl::Seconds(1));
    fold_what_is_due();
    EXPECT_EQ(store.fold_count, fold_count) << "too soon";
    clock.Advance(absl::Seconds(1));
    fold_what_is_due();
    EXPECT_EQ(store.fold_count, ++fold_count) << "not when it was due";
    next = row.next;
  }
  clock.Advance(next);
  fold_what_is_due();
  EXPECT_EQ(store.fold_count, ++fold_count);
  loop.Stop();
}

TEST(FoldLoopTest, WhatIsAckedAndNotInHeadsEndsTheEpochAndIsNotPassed) {
  Heads heads;
  heads.NoteWriter(kTrial, kWriter, 0);
  BusyStore store(heads);
  heads.Add({Chunk(1), Chunk(3)});
  MasterState state;
  state.SetDatabase(absl::OkStatus());
  state.BecomeOwner(1, false);
  FoldLoop loop({.interval = absl::Hours(1), .merge = {}},
                {store, heads, state, RealClock::Get(), [] { return std::int64_t{0}; }});
  loop.Start();
  const auto folded = loop.FoldNow(std::nullopt, SteadyTime::Now() + absl::Seconds(20));
  EXPECT_TRUE(absl::IsUnavailable(folded.status())) << folded.status();
  EXPECT_TRUE(state.lost_reported());
  EXPECT_EQ(store.fold_count, 0);
  loop.Stop();
}

TEST(FoldLoopTest, MergesThatNeverEndLetFoldsThrough) {
  Heads heads;
  heads.NoteWriter(kTrial, kWriter, 0);
  BusyStore store(heads);
  store.merges_for_ever = true;
  heads.Add({Chunk(++store.newest)});
  MasterState state;
  state.SetDatabase(absl::OkStatus());
  state.BecomeOwner(1, false);
  FoldLoop loop({.interval = absl::Milliseconds(10), .slice_bytes = 30'000, .merge = {}},
                {store, heads, state, RealClock::Get(), [] { return std::int64_t{0}; }});
  loop.Start();
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
  while (store.recycle_count < 3 && !deadline.HasPassed()) absl::SleepFor(absl::Milliseconds(1));
  loop.Stop();
  EXPECT_GE(store.fold_count, 3);
  EXPECT_GE(store.recycle_count, 3) << "what is merged is not recycled";
  EXPECT_GE(store.merge_count, 3 * 8) << "merges come round, too";
}

// A writer closes during each merge, so that somebody waits behind each.
TEST(FoldLoopTest, WritersThatCloseAllTheTimeLetMergesThrough) {
  Heads heads;
  heads.NoteWriter(kTrial, kWriter, 0);
  BusyStore store(heads);
  store.merges_for_ever = true;
  heads.Add({Chunk(++store.newest)});
  MasterState state;
  state.SetDatabase(absl::OkStatus());
  state.BecomeOwner(1, false);
  FoldLoop loop({.interval = absl::Seconds(1), .slice_bytes = 30'000, .merge = {}},
                {store, heads, state, RealClock::Get(), [] { return std::int64_t{0}; }});
  store.on_merge = [&] { loop.FoldSoon(kTrial); };
  loop.Start();
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
  while (store.merge_count < 100 && !deadline.HasPassed()) absl::SleepFor(absl::Milliseconds(1));
  loop.Stop();
  EXPECT_GE(store.merge_count, 100) << "one came with each fold of everything, and no other";
}

// Its rows may be there beside heads, which merged rows, without the fold's number, would be read with.
TEST(FoldLoopTest, WhileAFoldIsInDoubtNothingIsMerged) {
  for (const absl::Status& in_doubt :
       {absl::UnknownError("COMMIT"), absl::UnavailableError("half")}) {
    SCOPED_TRACE(in_doubt.ToString());
    constexpr TrialId kOther = static_cast<TrialId>(2);
    Heads heads;
    heads.NoteWriter(kTrial, kWriter, 0);
    heads.NoteWriter(kOther, kWriter, 0);
    BusyStore store(heads);
    store.is_busy = false;
    store.merges_for_ever = true;
    const auto of_other = std::make_shared<HeadChunk>(*Chunk(1));
    of_other->trial_id = kOther;
    MasterState state;
    state.SetDatabase(absl::OkStatus());
    state.BecomeOwner(1, false);
    FoldLoop loop({.interval = absl::Hours(1), .unfolded_bytes_soft = 2500, .merge = {}},
                  {store, heads, state, RealClock::Get(), [] { return std::int64_t{0}; }});
    // A first merge is kept from going on by a fold that fails, and by one of another trial behind it.
    std::atomic<bool> failing = false;
    store.on_merge = [&] {
      if (failing.exchange(true)) return;
      heads.Add({Chunk(4), of_other});
      store.fold_status = in_doubt;
      loop.FoldSoon(kTrial);
      loop.FoldSoon(kOther);
    };
    heads.Add({Chunk(1), Chunk(2), Chunk(3)});
    loop.Start();
    const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
    while (heads.UnfoldedSampleCount(kOther) > 0 || !failing) {
      ASSERT_FALSE(deadline.HasPassed());
      std::this_thread::yield();
    }
    // When the second is answered the thread has done what was due before the first.
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(loop.FoldNow(TrialId{3}, SteadyTime::Now() + absl::Seconds(20)).ok());
    }
    EXPECT_EQ(store.merge_count, 1);
    EXPECT_FALSE(state.lost_reported());
    EXPECT_EQ(heads.UnfoldedSampleCount(kTrial), 1);
    heads.Add({Chunk(5), Chunk(6)});  // enough for a fold of everything
    while (store.merge_count == 1 && !deadline.HasPassed()) std::this_thread::yield();
    EXPECT_GT(store.merge_count, 1) << "once all is folded";
    EXPECT_EQ(heads.UnfoldedSampleCount(kTrial), 0);
    loop.Stop();
  }
}

TEST(FoldLoopTest, AFoldUnderSteadyIngestEndsAndMergesFollow) {
  Heads heads;
  heads.NoteWriter(kTrial, kWriter, 0);
  BusyStore store(heads);
  for (int i = 0; i < 100; ++i) heads.Add({Chunk(++store.newest)});
  MasterState state;
  state.SetDatabase(absl::OkStatus());
  state.BecomeOwner(1, false);
  FoldLoop loop({.interval = absl::Milliseconds(10), .slice_bytes = 30'000, .merge = {}},
                {store, heads, state, RealClock::Get(), [] { return std::int64_t{0}; }});
  loop.Start();
  const auto folded = loop.FoldNow(std::nullopt, SteadyTime::Now() + absl::Seconds(20));
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_GE(folded->sample_count, 100) << "all that was there when it was asked";
  // Regular folds end, too: what comes after them has its turn.
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
  while (store.recycle_count == 0 && !deadline.HasPassed()) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_GT(store.merge_count, 0);
  EXPECT_GT(store.recycle_count, 0);
  loop.Stop();
  EXPECT_EQ(loop.FoldNow(std::nullopt, SteadyTime::Now()).status().message(),
            "this master is stopping");
}

HeadChunkPtr BulkChunk(std::uint64_t sequence, TrialId trial_id = kTrial) {
  auto chunk = std::make_shared<HeadChunk>(*Chunk(sequence));
  chunk->trial_id = trial_id;
  TickTable& table = chunk->tables[0];
  for (std::size_t i = 1; i < kBulkTicks; ++i) {
    table.times_us.push_back(1000 + static_cast<std::int64_t>(i));
    table.batches.push_back(-1);
    table.columns[0].values.push_back(2.0);
  }
  return chunk;
}

// A loop that folds when it is asked, and what stands around it.
class BulkLoopTest : public ::testing::Test {
 protected:
  BulkLoopTest() {
    heads_.RecoveryStarted({}, FoldNo{});
    heads_.NoteWriter(kTrial, kWriter, 0);
    state_.SetDatabase(absl::OkStatus());
    state_.BecomeOwner(1, false);
    loop_.Start();
  }
  absl::Status FoldNow() {
    return loop_.FoldNow(std::nullopt, SteadyTime::Now() + absl::Seconds(20)).status();
  }
  Heads heads_;
  BusyStore store_{heads_};
  MasterState state_;
  FoldLoop loop_{{.interval = absl::Hours(1), .merge = {}},
                 {store_, heads_, state_, RealClock::Get(), [] { return std::int64_t{0}; }}};
};

TEST_F(BulkLoopTest, WhatComesInBulkGoesStraightIntoLeavesAndOthersTogether) {
  constexpr TrialId kOther = static_cast<TrialId>(2);
  heads_.NoteWriter(kOther, kWriter, 0);
  heads_.Add({BulkChunk(1), Chunk(2), BulkChunk(1, kOther)});
  store_.newest = 2;  // what it brings is of later
  EXPECT_TRUE(FoldNow().ok());
  EXPECT_EQ(store_.bulk_count, 2) << "a transaction for each trial";
  EXPECT_EQ(heads_.UnfoldedSampleCount(kOther), 0);
}

TEST_F(BulkLoopTest, TicksThatLieFarApartAreFoldedByTheirRows) {
  std::vector<HeadChunkPtr> chunks;
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    auto chunk = std::make_shared<HeadChunk>(*BulkChunk(sequence));
    for (std::size_t i = 0; i < 200; ++i) {
      const auto tick = static_cast<std::int64_t>(sequence * 200 + i);
      chunk->tables[0].times_us[i] = tick * 25 * 3'600'000'000;
    }
    chunks.push_back(chunk);
  }
  heads_.Add(chunks);
  store_.newest = 100;
  EXPECT_TRUE(FoldNow().ok());
  // 100 chunks of some 400 rows each, halved until they are below 10,000.
  EXPECT_EQ(store_.bulk_count, 8);
  EXPECT_EQ(store_.fold_count, 8);
}

TEST_F(BulkLoopTest, ATrialThatSomebodyReadsTakesTheWayThroughRecent) {
  heads_.Add({BulkChunk(1)});
  store_.newest = 1;
  {
    const HeadsPin pin = heads_.Pin(kTrial);
    EXPECT_TRUE(FoldNow().ok());
    EXPECT_EQ(store_.bulk_count, 0);
    EXPECT_EQ(store_.fold_count, 1);
    EXPECT_EQ(pin.chunks().size(), 1u);
  }
}

TEST_F(BulkLoopTest, AReaderWhoComesMeanwhileSeesHeadsOfAfter) {
  heads_.Add({BulkChunk(1)});
  store_.newest = 1;
  std::thread reader;
  std::atomic<int> unfolded = -1;
  store_.on_bulk = [&] {
    std::atomic<bool> there = false;
    reader = std::thread([&] {
      EXPECT_FALSE(heads_.AwaitBulk(kTrial, absl::ZeroDuration()));
      there = true;
      const HeadsPin pin = heads_.Pin(kTrial);
      int before = 0;
      for (const HeadChunkPtr& chunk : pin.chunks()) before += chunk->sequence == 1 ? 1 : 0;
      unfolded = before;
    });
    while (!there) std::this_thread::yield();
    // As long as it may wait it does not go on.
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    EXPECT_EQ(unfolded, -1);
  };
  EXPECT_TRUE(FoldNow().ok());
  ASSERT_EQ(store_.bulk_count, 1);
  reader.join();
  EXPECT_EQ(unfolded, 0) << "the chunk that was folded meanwhile is not among them";
}

TEST_F(BulkLoopTest, WhereNobodyKnowsWhetherItIsStoredReadersWaitUntilHeadsWereCleared) {
  heads_.Add({BulkChunk(1)});
  store_.bulk_status = absl::UnknownError("COMMIT");
  EXPECT_FALSE(FoldNow().ok());
  EXPECT_TRUE(state_.lost_reported());
  // Before anybody looked after the ownership: it is not begun again, but may be folded the other way.
  EXPECT_TRUE(FoldNow().ok());
  EXPECT_EQ(store_.bulk_count, 1);
  std::atomic<bool> there = false, entered = false;
  std::thread reader([&] {
    there = true;
    const HeadsPin pin = heads_.Pin(kTrial);
    entered = true;
    EXPECT_TRUE(pin.chunks().empty()) << "they may be in rows as well";
  });
  while (!there) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  EXPECT_FALSE(entered);
  EXPECT_FALSE(heads_.AwaitBulk(kTrial, absl::Milliseconds(1)));
  state_.EndOwnership(1, [&] { heads_.Clear(); });
  reader.join();
}

TEST_F(BulkLoopTest, WhereTheOwnershipEndedMeanwhileReadersGoOn) {
  for (const absl::Status& status : {absl::OkStatus(), absl::UnknownError("COMMIT")}) {
    SCOPED_TRACE(status.ToString());
    heads_.Clear();
    state_.BecomeOwner(1, false);
    heads_.NoteWriter(kTrial, kWriter, 0);
    heads_.Add({BulkChunk(1)});
    store_.bulk_status = status;
    store_.on_bulk = [&] { state_.EndOwnership(1, [&] { heads_.Clear(); }); };
    EXPECT_FALSE(FoldNow().ok());
    std::thread([&] { const HeadsPin pin = heads_.Pin(kTrial); }).join();
  }
}

TEST_F(BulkLoopTest, WhatIsRefusedIsFoldedTheOtherWayWhileReadersAreLetIn) {
  heads_.Add({BulkChunk(1)});
  store_.newest = 1;
  store_.refuses_bulk = true;
  EXPECT_TRUE(FoldNow().ok());
  EXPECT_EQ(store_.bulk_count, 1);
  EXPECT_EQ(store_.fold_count, 1);
  EXPECT_TRUE(heads_.AwaitBulk(kTrial, absl::ZeroDuration()));
}

TEST_F(BulkLoopTest, AFoldThatFailedLetsReadersSeeWhatWasThere) {
  heads_.Add({BulkChunk(1)});
  store_.bulk_status = absl::UnavailableError("no");
  EXPECT_FALSE(FoldNow().ok());
  EXPECT_FALSE(state_.lost_reported());
  EXPECT_EQ(heads_.Pin(kTrial).chunks().size(), 1u);
}

}  // namespace
}  // namespace stepwell
