#include "server/heads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/synchronization/mutex.h"
#include "base/worker.h"

namespace stepwell {
namespace {

constexpr TrialId kTrial = static_cast<TrialId>(1);
constexpr WriterNo kWriter = static_cast<WriterNo>(1);
constexpr SeriesNo kSeries = static_cast<SeriesNo>(5);

HeadChunkPtr Chunk(std::uint64_t sequence, std::int64_t time_us = 0, double value = 0) {
  auto chunk = std::make_shared<HeadChunk>();
  chunk->trial_id = kTrial;
  chunk->writer_no = kWriter;
  chunk->sequence = sequence;
  chunk->received_time_us = static_cast<std::int64_t>(sequence) * 10;
  chunk->bytes = 100;
  if (time_us != 0) {
    chunk->sample_count = 1;
    chunk->tables = {{1, {time_us}, {-1}, {{kSeries, {value}, {}}}}};
  }
  return chunk;
}

std::vector<std::uint64_t> Sequences(const HeadsPin& pin) {
  std::vector<std::uint64_t> sequences;
  for (const HeadChunkPtr& chunk : pin.chunks()) sequences.push_back(chunk->sequence);
  return sequences;
}

TEST(HeadsTest, HoldsChunksUntilTheyAreFolded) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  heads.NoteWriter(kTrial, kWriter, 2);
  auto range = std::make_shared<HeadChunk>(*Chunk(9));
  range->first_sequence = 5;
  heads.Add({Chunk(3, 100, 1.0), Chunk(4, 50, 2.0), range});
  EXPECT_EQ(heads.unfolded_bytes(), 300);
  EXPECT_EQ(heads.UnfoldedSampleCount(kTrial), 2);
  EXPECT_EQ(heads.LatestOf(kTrial).at(kSeries).value, 1.0);
  const Heads::FoldPlan plan = heads.PlanFold(std::nullopt, 1000);
  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_EQ(plan.folds[0].from_sequence_exclusive, 2U);
  EXPECT_EQ(plan.folds[0].to_sequence, 9U);
  EXPECT_EQ(plan.folds[0].parts.size(), 2U) << "a chunk without tables has no part";
  heads.Folded(plan.folds, static_cast<FoldNo>(7));
  EXPECT_EQ(heads.unfolded_bytes(), 0);
  EXPECT_TRUE(heads.Pin(kTrial).chunks().empty());
  EXPECT_EQ(Value(heads.Pin(kTrial).fold_no()), 7);
  EXPECT_EQ(heads.LatestOf(kTrial).at(kSeries).value, 1.0) << "the latest value outlives the fold";
}

TEST(HeadsTest, RowsThatHadNothingAreAskedOnceToo) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  heads.NoteWriter(kTrial, kWriter, 0);
  EXPECT_TRUE(heads.ListLatest(kTrial).empty());
  heads.NoteLatest(kTrial, {kSeries}, {});
  ASSERT_EQ(heads.ListLatest(kTrial).size(), 1U);
  EXPECT_TRUE(heads.ListLatest(kTrial)[0].second.rows_asked);
  EXPECT_FALSE(heads.ListLatest(kTrial)[0].second.has_sample());
  heads.Add({Chunk(1, 100, 1.0)});
  const Heads::LatestList list = heads.ListLatest(kTrial);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].first, kSeries);
  EXPECT_TRUE(list[0].second.has_sample());
  EXPECT_TRUE(list[0].second.rows_asked) << "they need not be asked again";
  EXPECT_EQ(list[0].second.value, 1.0);
}

TEST(HeadsTest, AChunkThatIsThereOrFoldedIsLeftOut) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  heads.NoteWriter(kTrial, kWriter, 2);
  heads.Add({Chunk(5)});
  heads.Add({Chunk(1), Chunk(2), Chunk(3), Chunk(4), Chunk(5), Chunk(6)});
  EXPECT_EQ(Sequences(heads.Pin(kTrial)), (std::vector<std::uint64_t>{3, 4, 5, 6}));
  EXPECT_EQ(heads.unfolded_bytes(), 400);
}

TEST(HeadsTest, AFoldTakesTheOldestFirstWithinItsBytes) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  heads.NoteWriter(kTrial, kWriter, 0);
  heads.Add({Chunk(1), Chunk(2), Chunk(3)});
  const Heads::FoldPlan plan = heads.PlanFold(std::nullopt, 150);
  EXPECT_EQ(plan.folds[0].to_sequence, 2U);
  EXPECT_EQ(plan.all_before_us, 30) << "the third is left";
  EXPECT_EQ(heads.PlanFold(static_cast<TrialId>(2), 150).folds.size(), 0U);
  EXPECT_EQ(heads.PlanFold(static_cast<TrialId>(2), 150).all_before_us, 10);
}

// As at a start, on a standby, and of an owner that lost the database.
TEST(HeadsTest, WhereTheyHoldNothingAPinIsOfAllRowsAndSaysSo) {
  const auto expect_nothing_held = [](Heads& heads) {
    const HeadsPin pin = heads.Pin(kTrial);
    EXPECT_EQ(pin.fold_no(), FoldNo{INT64_MAX});
    EXPECT_TRUE(pin.recovering());
    EXPECT_TRUE(pin.chunks().empty());
  };
  Heads heads;
  expect_nothing_held(heads);
  heads.NoteWriter(kTrial, kWriter, 0);  // a take-over that is under way
  expect_nothing_held(heads);
  heads.RecoveryStarted({}, FoldNo{3});
  EXPECT_EQ(heads.Pin(kTrial).fold_no(), FoldNo{3});
  EXPECT_FALSE(heads.Pin(kTrial).recovering());
  heads.Clear();
  expect_nothing_held(heads);
}

TEST(HeadsTest, ATrialThatIsReplayedIsNotFolded) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  heads.NoteWriter(kTrial, kWriter, 0);
  heads.RecoveryStarted({kTrial}, static_cast<FoldNo>(3));
  heads.Add({Chunk(2)});
  EXPECT_TRUE(heads.PlanFold(std::nullopt, 1000).folds.empty());
  EXPECT_TRUE(heads.Pin(kTrial).recovering());
  heads.Add({Chunk(1)});
  heads.RecoveryDone(kTrial);
  EXPECT_FALSE(heads.Pin(kTrial).recovering());
  EXPECT_EQ(heads.PlanFold(std::nullopt, 1000).folds[0].to_sequence, 2U);
}

// As of a trial that was opened behind a take-over, say, by the owner of before, who acked the first two.
TEST(HeadsTest, AFoldEndsWhereSomethingAckedIsNotThere) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  constexpr TrialId kOther = static_cast<TrialId>(2);
  heads.NoteWriter(kTrial, kWriter, 0);
  heads.Add({Chunk(3)});
  Heads::FoldPlan plan = heads.PlanFold(std::nullopt, 1000);
  EXPECT_TRUE(plan.folds.empty());
  EXPECT_EQ(plan.hole, std::pair(kTrial, kWriter));
  EXPECT_EQ(plan.all_before_us, 30) << "it is not folded";
  EXPECT_FALSE(heads.PlanFold(kOther, 1000).hole.has_value());
  heads.Add({Chunk(1), Chunk(6)});
  plan = heads.PlanFold(std::nullopt, 1000);
  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_EQ(plan.folds[0].to_sequence, 1U) << "up to the hole";
  EXPECT_TRUE(plan.hole.has_value());
  auto range = std::make_shared<HeadChunk>(*Chunk(5));
  range->first_sequence = 4;
  heads.Add({Chunk(2), range});
  plan = heads.PlanFold(std::nullopt, 1000);
  EXPECT_EQ(plan.folds[0].to_sequence, 6U);
  EXPECT_FALSE(plan.hole.has_value());
}

// Another one would not bring it either, and what is behind it waited for ever.
TEST(HeadsTest, WhatAReplayDidNotBringHoldsUpNoFold) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  heads.NoteWriter(kTrial, kWriter, 0);
  heads.RecoveryStarted({kTrial}, static_cast<FoldNo>(3));
  heads.Add({Chunk(3)});
  EXPECT_FALSE(heads.PlanFold(std::nullopt, 1000).hole.has_value()) << "it goes on";
  heads.RecoveryDone(kTrial);
  heads.Add({Chunk(4)});
  Heads::FoldPlan plan = heads.PlanFold(std::nullopt, 1000);
  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_EQ(plan.folds[0].to_sequence, 4U);
  EXPECT_FALSE(plan.hole.has_value());
  heads.Add({Chunk(6)});
  plan = heads.PlanFold(std::nullopt, 1000);
  EXPECT_EQ(plan.folds[0].to_sequence, 4U);
  EXPECT_TRUE(plan.hole.has_value());
}

TEST(HeadsTest, TheOldestPinHoldsMergesBack) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  heads.Folded({}, static_cast<FoldNo>(4));
  EXPECT_EQ(Value(heads.MergeableFoldNo()), 4);
  {
    const HeadsPin pin = heads.Pin(kTrial);
    heads.Folded({}, static_cast<FoldNo>(6));
    EXPECT_EQ(Value(heads.MergeableFoldNo()), 4);
    const HeadsPin later = heads.Pin(kTrial);
    EXPECT_EQ(Value(heads.MergeableFoldNo()), 4);
  }
  EXPECT_EQ(Value(heads.MergeableFoldNo()), 6);
}

TEST(HeadsTest, TheNewestValueIsByTimeThenSequence) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  heads.Add({Chunk(1, 200, 1.0), Chunk(2, 100, 2.0), Chunk(3, 200, 3.0)});
  EXPECT_EQ(heads.LatestOf(kTrial).at(kSeries).value, 3.0);
  EXPECT_FALSE(heads.LatestOf(kTrial).at(kSeries).rows_asked);
  heads.NoteLatest(kTrial, {kSeries}, {{kSeries, {.time_us = 150, .value = 9.0}}});
  EXPECT_TRUE(heads.LatestOf(kTrial).at(kSeries).rows_asked);
  EXPECT_EQ(heads.LatestOf(kTrial).at(kSeries).value, 3.0);
  constexpr auto kOther = static_cast<SeriesNo>(6);
  heads.NoteLatest(kTrial, {kOther}, {{kOther, {.time_us = 150, .value = 9.0}}});
  EXPECT_EQ(heads.LatestOf(kTrial).at(kOther).value, 9.0);
  heads.Add({Chunk(4, 300, 4.0)});
  EXPECT_TRUE(heads.LatestOf(kTrial).at(kSeries).rows_asked) << "asked once is enough";
}

// One trial with `series_count` values in one chunk.
HeadChunkPtr TrialChunk(std::int64_t trial, int series_count, std::uint64_t sequence = 1) {
  auto chunk = std::make_shared<HeadChunk>();
  chunk->trial_id = static_cast<TrialId>(trial);
  chunk->writer_no = kWriter;
  chunk->sequence = sequence;
  chunk->bytes = 100;
  chunk->tables = {{1, {1000}, {-1}, {}}};
  for (int i = 1; i <= series_count; ++i) {
    chunk->tables[0].columns.push_back({static_cast<SeriesNo>(i), {1.0 * i}, {}});
  }
  return chunk;
}

void FoldAll(Heads& heads, std::int64_t fold_no) {
  heads.Folded(heads.PlanFold(std::nullopt, 1 << 30).folds, static_cast<FoldNo>(fold_no));
}

TEST(HeadsTest, FoldedTrialsLeaveOldestFirstBeforeTheBoundIsPassed) {
  constexpr std::int64_t kBound = 1 << 20;
  Heads heads({.kept_bytes_max = kBound});
  heads.RecoveryStarted({}, FoldNo{});
  for (int trial = 1; trial <= 10'000; ++trial) {
    heads.NoteWriter(static_cast<TrialId>(trial), kWriter, 0);
    heads.Add({TrialChunk(trial, 20)});
    if (trial % 100 == 0) FoldAll(heads, trial);
    ASSERT_LE(heads.kept_bytes(), kBound + 100 * 4096) << trial;
  }
  FoldAll(heads, 10'001);
  EXPECT_LE(heads.kept_bytes(), kBound);
  EXPECT_TRUE(heads.LatestOf(static_cast<TrialId>(1)).empty());
  EXPECT_EQ(heads.LatestOf(static_cast<TrialId>(10'000)).size(), 20U);
  // Reads bring trials back, within the same bound.
  for (int trial = 1; trial <= 10'000; ++trial) {
    Heads::Latest stored;
    for (int i = 1; i <= 20; ++i) stored[static_cast<SeriesNo>(i)] = {.time_us = 1000};
    heads.NoteLatest(static_cast<TrialId>(trial), {}, stored);
    ASSERT_LE(heads.kept_bytes(), kBound) << trial;
  }
  heads.Clear();
  EXPECT_EQ(heads.kept_bytes(), 0);
}

TEST(HeadsTest, WhatIsNotFoldedOrPinnedBeforeItsFoldStays) {
  Heads heads({.kept_bytes_max = 1});
  heads.RecoveryStarted({}, FoldNo{});
  heads.NoteWriter(kTrial, kWriter, 0);
  heads.Add({Chunk(1, 100, 1.0)});
  heads.NoteLatest(static_cast<TrialId>(2), {}, {{kSeries, {.time_us = 1}}});
  EXPECT_TRUE(heads.LatestOf(static_cast<TrialId>(2)).empty()) << "no room";
  EXPECT_EQ(heads.LatestOf(kTrial).size(), 1U) << "not folded";
  {
    const HeadsPin pin = heads.Pin(kTrial);
    FoldAll(heads, 3);
    EXPECT_EQ(heads.LatestOf(kTrial).size(), 1U)
        << "the pin's rows end before the fold: only memory has the value";
  }
  FoldAll(heads, 4);
  EXPECT_TRUE(heads.LatestOf(kTrial).empty());
  EXPECT_EQ(heads.kept_bytes(), 0);
}

TEST(HeadsTest, AWriterWhoseTrialLeftGoesOnWhereItStood) {
  Heads heads({.kept_bytes_max = 1});
  heads.RecoveryStarted({}, FoldNo{});
  heads.NoteWriter(kTrial, kWriter, 4);
  heads.Add({Chunk(5, 100, 1.0)});
  FoldAll(heads, 1);
  ASSERT_EQ(heads.kept_bytes(), 0);
  // No Open comes between: the stream is the same.
  auto range = std::make_shared<HeadChunk>(*Chunk(9));
  range->first_sequence = 6;
  heads.Add({range, Chunk(10, 200, 2.0)});
  const Heads::FoldPlan plan = heads.PlanFold(std::nullopt, 1000);
  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_EQ(plan.folds[0].from_sequence_exclusive, 5U);
  EXPECT_EQ(plan.folds[0].to_sequence, 10U);
}

TEST(HeadsTest, ATrialsFoldNumberMovesWithItsOwnFoldsAlone) {
  Heads heads({.kept_bytes_max = 4'000});
  heads.RecoveryStarted({}, FoldNo{});
  constexpr TrialId kOther = static_cast<TrialId>(2);
  const auto number = [&](TrialId trial_id) { return Value(heads.Pin(trial_id).fold_no()); };
  heads.NoteWriter(kTrial, kWriter, 4);
  heads.RecoveryStarted({}, FoldNo{10});
  EXPECT_EQ(number(kTrial), 10) << "what others folded before is all in rows";
  EXPECT_EQ(number(kOther), 10);
  heads.Add({Chunk(5, 100, 1.0)});
  FoldAll(heads, 11);
  EXPECT_EQ(number(kTrial), 11);
  EXPECT_EQ(number(kOther), 10);
  {
    const HeadsPin pin = heads.Pin(kOther);
    heads.Add({Chunk(6, 200, 1.0)});
    FoldAll(heads, 12);
    EXPECT_EQ(Value(heads.MergeableFoldNo()), 11) << "a pin is of the moment, not of its trial";
  }
  EXPECT_EQ(Value(heads.MergeableFoldNo()), 12);
  // Many others come and make it leave: rows of its last fold are still its own.
  heads.Add({Chunk(7, 300, 1.0)});
  for (std::int64_t other = 100; other < 120; ++other) {
    heads.NoteWriter(static_cast<TrialId>(other), kWriter, 0);
  }
  FoldAll(heads, 13);
  ASSERT_TRUE(heads.LatestOf(kTrial).empty()) << "it left";
  EXPECT_EQ(number(kTrial), 13);
  heads.Add({Chunk(8, 400, 1.0)});
  EXPECT_EQ(number(kTrial), 13);
  // What was read before all was forgotten is told apart from what is read after it.
  heads.Clear();
  EXPECT_GT(number(kTrial), 13);
}

// A database of rows with fold numbers, beside the real heads: a reader that pins, then looks, must
// see every committed sequence exactly once, however folds and merges run beside it.
class RowsModel {
 public:
  void Fold(const std::vector<WriterFold>& folds, std::int64_t fold_no) {
    absl::MutexLock lock(&mu_);
    for (const WriterFold& fold : folds) {
      for (std::uint64_t s = fold.from_sequence_exclusive + 1; s <= fold.to_sequence; ++s) {
        recent_[s] = fold_no;
      }
    }
  }
  // Rows of leaves, which do not say of which fold they are.
  void FoldBulk(const std::vector<WriterFold>& folds) {
    absl::MutexLock lock(&mu_);
    for (const WriterFold& fold : folds) {
      for (std::uint64_t s = fold.from_sequence_exclusive + 1; s <= fold.to_sequence; ++s) {
        merged_.insert(s);
      }
    }
  }
  void Merge(std::int64_t fold_no_max) {
    absl::MutexLock lock(&mu_);
    for (auto row = recent_.begin(); row != recent_.end();) {
      if (row->second > fold_no_max) {
        ++row;
        continue;
      }
      merged_.insert(row->first);
      row = recent_.erase(row);
    }
  }
  std::multiset<std::uint64_t> Read(std::int64_t fold_no_max) const {
    absl::MutexLock lock(&mu_);
    std::multiset<std::uint64_t> seen(merged_.begin(), merged_.end());
    for (const auto& [sequence, fold_no] : recent_) {
      if (fold_no <= fold_no_max) seen.insert(sequence);
    }
    return seen;
  }

 private:
  mutable absl::Mutex mu_;
  std::map<std::uint64_t, std::int64_t> recent_ ABSL_GUARDED_BY(mu_);
  std::set<std::uint64_t> merged_ ABSL_GUARDED_BY(mu_);
};

TEST(HeadsTest, ReadersBesideFoldsAndMergesSeeEverySequenceOnce) {
  Heads heads;
  heads.RecoveryStarted({}, FoldNo{});
  RowsModel rows;
  heads.NoteWriter(kTrial, kWriter, 0);
  constexpr std::uint64_t kChunks = 3000;
  std::atomic<std::uint64_t> committed{0};
  std::atomic<bool> stop{false};
  std::atomic<int> reads{0}, bulk_folds{0};
  Worker committer("committer", [&] {
    for (std::uint64_t i = 1; i <= kChunks; ++i) {
      // At least one read in every hundred chunks, however the threads are scheduled.
      while (reads < static_cast<int>(i / 100) && !stop) std::this_thread::yield();
      heads.Add({Chunk(i)});
      committed = i;
    }
  });
  Worker folder("folder", [&] {
    for (std::int64_t fold_no = 1; !stop; ++fold_no) {
      const Heads::FoldPlan plan = heads.PlanFold(std::nullopt, 2000);
      if (plan.folds.empty()) continue;
      const bool in_bulk = fold_no % 2 == 0 && heads.BeginBulk(kTrial);
      if (in_bulk) {
        rows.FoldBulk(plan.folds);
        ++bulk_folds;
      } else {
        rows.Fold(plan.folds, fold_no);
      }
      heads.Folded(plan.folds, static_cast<FoldNo>(fold_no));
      if (in_bulk) heads.EndBulk(kTrial);
    }
  });
  Worker merger("merger", [&] {
    while (!stop) rows.Merge(Value(heads.MergeableFoldNo()));
  });
  // Also where an assertion returns early: the workers are joined after this.
  const absl::Cleanup stop_all = [&stop] { stop = true; };
  std::uint64_t newest = 0;
  while (newest < kChunks) {
    // Who pins all the time keeps folds from leaves.
    while (bulk_folds <= reads / 4 && heads.unfolded_bytes() > 0) std::this_thread::yield();
    const std::uint64_t at_least = committed;
    const HeadsPin pin = heads.Pin(kTrial);
    // Room for folds and merges between the pin and the look at the rows.
    for (int i = 0; i < 10; ++i) std::this_thread::yield();
    std::multiset<std::uint64_t> seen = rows.Read(Value(pin.fold_no()));
    for (const std::uint64_t sequence : Sequences(pin)) seen.insert(sequence);
    newest = seen.empty() ? 0 : *seen.rbegin();
    ASSERT_EQ(seen.size(), newest) << "a sequence is missing or there twice";
    ASSERT_EQ(std::set<std::uint64_t>(seen.begin(), seen.end()).size(), newest);
    ASSERT_GE(newest, at_least);
    ++reads;
  }
  EXPECT_GE(reads, static_cast<int>(kChunks / 100));
  // Where the threads were scheduled so that somebody read whenever it was a bulk's turn.
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(30);
  for (std::uint64_t i = kChunks + 1; bulk_folds == 0 && !deadline.HasPassed(); ++i) {
    heads.Add({Chunk(i)});
    std::this_thread::yield();
  }
  EXPECT_GT(bulk_folds, 0);
}

}  // namespace
}  // namespace stepwell
