#include "server/fold_loop.h"
#include "base/steady_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "absl/time/clock.h"

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
    if (fold_count > 1000) return absl::InternalError("it never ends");
    FoldResult result;
    for (const WriterFold& fold : folds) {
      for (std::uint64_t i = fold.from_sequence_exclusive; i < fold.to_sequence; ++i) {
        heads_.Add({Chunk(++newest)});
        ++result.sample_count;
      }
    }
    result.fold_no = static_cast<FoldNo>(fold_count.load());
    return result;
  }
  absl::StatusOr<MergeResult> Merge(std::int64_t, const MergeLimits&) override {
    ++merge_count;
    return MergeResult{.more = merges_for_ever};
  }
  absl::StatusOr<FoldNo> NextFoldNo() override { return FoldNo{1}; }
  absl::Status AttachLeaves(std::int64_t) override { return absl::OkStatus(); }
  absl::Status RecycleJournal(std::int64_t, std::int64_t) override {
    ++recycle_count;
    return absl::OkStatus();
  }
  absl::Status RecycleRecent(std::int64_t) override { return absl::OkStatus(); }

  bool merges_for_ever = false;
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

}  // namespace
}  // namespace stepwell
