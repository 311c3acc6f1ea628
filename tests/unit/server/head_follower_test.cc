#include "server/head_follower.h"
#include "base/steady_time.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>

#include "absl/time/clock.h"
#include "base/worker.h"
#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

constexpr TrialId kTrial = static_cast<TrialId>(1);
constexpr TrialId kOther = static_cast<TrialId>(2);
constexpr std::int64_t kBytes = 1000;

struct ChunkFields {
  TrialId trial_id = kTrial;
  int writer = 1;
  std::uint64_t sequence = 1;
  std::uint64_t first_sequence = 0;
  std::int64_t sample_time_us = 0;  // 0 = no samples
};

class HeadFollowerTest : public ::testing::Test {
 protected:
  HeadFollowerTest() { heads_.RecoveryStarted({}, FoldNo{0}); }

  std::int64_t NowUs() const { return absl::ToUnixMicros(clock_.Now()); }
  HeadChunkPtr Make(const ChunkFields& fields) const {
    auto chunk = std::make_shared<HeadChunk>();
    chunk->trial_id = fields.trial_id;
    chunk->writer_no = static_cast<WriterNo>(fields.writer);
    chunk->sequence = fields.sequence;
    chunk->first_sequence = fields.first_sequence;
    chunk->received_time_us = NowUs();
    chunk->bytes = kBytes;
    if (fields.sample_time_us != 0) {
      chunk->sample_count = 1;
      chunk->tables = {{1, {fields.sample_time_us}, {-1}, {{static_cast<SeriesNo>(5), {1.0}, {}}}}};
    }
    return chunk;
  }
  void Add(const ChunkFields& fields) { heads_.Add({Make(fields)}); }
  void FoldAll(std::optional<TrialId> trial_id = std::nullopt) {
    heads_.Folded(heads_.PlanFold(trial_id, INT64_MAX).folds, static_cast<FoldNo>(++fold_no_));
  }
  std::unique_ptr<HeadFollower> Follow(TrialId trial_id = kTrial,
                                       absl::Duration lookback = absl::ZeroDuration()) {
    auto follower = HeadFollower::Start(heads_, trial_id, lookback);
    EXPECT_TRUE(follower.ok()) << follower.status();
    return follower.ok() ? *std::move(follower) : nullptr;
  }
  static std::vector<std::uint64_t> Sequences(const HeadFollower::Taken& taken) {
    std::vector<std::uint64_t> sequences;
    for (const HeadChunkPtr& chunk : taken.chunks) sequences.push_back(chunk->sequence);
    return sequences;
  }
  using S = std::vector<std::uint64_t>;
  using Outcome = HeadFollower::Outcome;

  FakeClock clock_;
  Heads heads_{{.followed_bytes_max = 10 * kBytes, .clock = &clock_}};
  std::int64_t fold_no_ = 0;
};

TEST_F(HeadFollowerTest, TakesWhatIsAckedFromNowOnWhateverIsFolded) {
  Add({.sequence = 1});
  const auto follower = Follow();
  EXPECT_EQ(Sequences(follower->Take(follower->start_index(), 100)), S{});
  Add({.sequence = 2});
  Add({.sequence = 3});
  const auto two = follower->Take(follower->start_index(), 100);
  EXPECT_EQ(Sequences(two), (S{2, 3}));
  EXPECT_FALSE(two.more);
  FoldAll();
  EXPECT_EQ(Sequences(follower->Take(follower->start_index(), 100)), (S{2, 3}))
      << "folded chunks stay";
  Add({.sequence = 4});
  EXPECT_EQ(Sequences(follower->Take(two.next_index, 100)), S{4});
}

TEST_F(HeadFollowerTest, ARepeatOrAReplayOfWhatIsFoldedIsNotTakenTwice) {
  const auto follower = Follow();
  Add({.sequence = 1});
  Add({.sequence = 1});
  FoldAll();
  Add({.sequence = 1});
  EXPECT_EQ(Sequences(follower->Take(follower->start_index(), 100)), S{1});
}

TEST_F(HeadFollowerTest, TakesAboutAsManySamplesAsAskedForAndAtLeastOneChunk) {
  const auto follower = Follow();
  for (std::uint64_t i = 1; i <= 5; ++i) Add({.sequence = i, .sample_time_us = 100});
  const auto first = follower->Take(follower->start_index(), 2);
  EXPECT_EQ(Sequences(first), (S{1, 2}));
  EXPECT_TRUE(first.more);
  const auto next = follower->Take(first.next_index, 0);
  EXPECT_EQ(Sequences(next), S{3});
  EXPECT_TRUE(next.more);
}

TEST_F(HeadFollowerTest, ALookbackBeginsWithWhatWasReceivedSince) {
  Add({.sequence = 1});
  clock_.Advance(absl::Seconds(20));
  Add({.sequence = 2});
  clock_.Advance(absl::Seconds(20));
  Add({.sequence = 3});
  FoldAll();
  for (const auto& [seconds, sequences] :
       std::vector<std::pair<int, S>>{{0, {}}, {1, {3}}, {20, {2, 3}}, {60, {1, 2, 3}}}) {
    const auto follower = Follow(kTrial, absl::Seconds(seconds));
    EXPECT_EQ(Sequences(follower->Take(follower->start_index(), 100)), sequences) << seconds;
    const auto stands = follower->StandsAt(follower->start_index());
    ASSERT_EQ(stands.writers.size(), 1U);
    EXPECT_EQ(stands.writers[0].index_sequence, 3 - sequences.size()) << seconds;
    EXPECT_EQ(stands.writers[0].newest_sequence, 3U);
  }
}

TEST_F(HeadFollowerTest, FoldedChunksLeaveAfterAMinuteUnfoldedOnesDoNot) {
  const auto follower = Follow();
  Add({.sequence = 1, .sample_time_us = 500});
  Add({.sequence = 2, .sample_time_us = 400});
  FoldAll();
  Add({.sequence = 3, .sample_time_us = 300});
  clock_.Advance(absl::Seconds(60));
  heads_.DropOldFollowed();
  EXPECT_EQ(Sequences(follower->Take(follower->start_index(), 100)), (S{1, 2, 3}));
  clock_.Advance(absl::Seconds(1));
  heads_.DropOldFollowed();
  EXPECT_EQ(heads_.followed_bytes(), 0);
  const auto taken = follower->Take(follower->start_index(), 100);
  EXPECT_EQ(taken.outcome, Outcome::kGone);
  EXPECT_EQ(Sequences(follower->Take(taken.begin_index, 100)), S{3});
  EXPECT_EQ(follower->OldestGone(follower->start_index()), 400);
  EXPECT_EQ(follower->OldestFrom(follower->start_index()), 300);
  EXPECT_EQ(follower->OldestGone(taken.begin_index), INT64_MAX);
  EXPECT_EQ(follower->StandsAt(0).writers[0].gone_sequence, 2U);
}

TEST_F(HeadFollowerTest, FoldedChunksOfAllTrialsStayWithinTheirBytesOldestFirst) {
  const auto follower = Follow();
  const auto other = Follow(kOther);
  constexpr std::int64_t kCost = kBytes + kFollowEntryBytes;
  for (std::uint64_t i = 1; i <= 6; ++i) {
    Add({.sequence = i, .sample_time_us = 100});
    clock_.Advance(absl::Seconds(1));
    Add({.trial_id = kOther, .sequence = i, .sample_time_us = 100});
    clock_.Advance(absl::Seconds(1));
  }
  EXPECT_EQ(heads_.followed_bytes(), 0) << "unfolded ones are counted elsewhere";
  FoldAll();
  EXPECT_LE(heads_.followed_bytes(), 10 * kBytes);
  EXPECT_GT(heads_.followed_bytes(), 10 * kBytes - kCost);
  const auto left = follower->Take(follower->start_index(), 100);
  EXPECT_EQ(left.outcome, Outcome::kGone);
  EXPECT_EQ(Sequences(follower->Take(left.begin_index, 100)), (S{3, 4, 5, 6}));
  const auto left_other = other->Take(other->start_index(), 100);
  EXPECT_EQ(Sequences(other->Take(left_other.begin_index, 100)), (S{2, 3, 4, 5, 6}));
}

TEST_F(HeadFollowerTest, AnUnfoldedFrontDoesNotBreakTheBound) {
  const auto follower = Follow();
  Add({.writer = 2, .sequence = 1});
  for (std::uint64_t i = 1; i <= 20; ++i) Add({.sequence = i, .sample_time_us = 100});
  // Everything but the first.
  Heads::FoldPlan plan = heads_.PlanFold(std::nullopt, INT64_MAX);
  std::erase_if(plan.folds, [](const WriterFold& fold) { return Value(fold.writer_no) == 2; });
  heads_.Folded(plan.folds, FoldNo{1});
  EXPECT_LE(heads_.followed_bytes(), 10 * kBytes);
  EXPECT_EQ(follower->Take(follower->start_index(), 100).outcome, Outcome::kGone);
  EXPECT_EQ(heads_.UnfoldedSampleCount(kTrial), 0);
  FoldAll();
  clock_.Advance(absl::Seconds(61));
  heads_.DropOldFollowed();
  EXPECT_EQ(heads_.followed_bytes(), 0) << "what left unfolded is not counted afterwards";
}

TEST_F(HeadFollowerTest, IsWokenOncePerCommitOfItsTrial) {
  const auto follower = Follow();
  const std::uint64_t seen = follower->version();
  heads_.Add({Make({.trial_id = kOther, .sequence = 1})});
  EXPECT_EQ(follower->version(), seen);
  heads_.Add({Make({.sequence = 1}), Make({.sequence = 2}), Make({.writer = 2, .sequence = 1})});
  EXPECT_EQ(follower->version(), seen + 1);
  follower->WaitPast(seen, SteadyTime::InfiniteFuture());  // does not wait
}

TEST_F(HeadFollowerTest, EndsWithTheHeadsAndWhenAllIsTakenAtAStop) {
  auto follower = Follow();
  Add({.sequence = 1});
  heads_.EndFollows();
  const auto last = follower->Take(follower->start_index(), 100);
  EXPECT_EQ(Sequences(last), S{1});
  EXPECT_EQ(last.outcome, Outcome::kTaken);
  EXPECT_EQ(follower->Take(last.next_index, 100).outcome, Outcome::kEnded);
  EXPECT_TRUE(
      absl::IsUnavailable(HeadFollower::Start(heads_, kTrial, absl::ZeroDuration()).status()));
  const std::uint64_t seen = follower->version();
  heads_.Clear();
  follower->WaitPast(seen, SteadyTime::InfiniteFuture());
  EXPECT_EQ(follower->Take(follower->start_index(), 100).outcome, Outcome::kEnded);
  EXPECT_TRUE(follower->StandsAt(0).ended);
  Add({.sequence = 2});  // of the next ownership, in another log
  EXPECT_EQ(follower->Take(follower->start_index(), 100).outcome, Outcome::kEnded);
}

TEST_F(HeadFollowerTest, NobodyFollowsHeadsThatAreNotWhole) {
  heads_.Clear();
  EXPECT_TRUE(
      absl::IsUnavailable(HeadFollower::Start(heads_, kTrial, absl::ZeroDuration()).status()));
  heads_.RecoveryStarted({kTrial}, FoldNo{0});
  EXPECT_TRUE(
      absl::IsUnavailable(HeadFollower::Start(heads_, kTrial, absl::ZeroDuration()).status()));
  EXPECT_NE(Follow(kOther), nullptr);
  heads_.RecoveryDone(kTrial);
  EXPECT_NE(Follow(), nullptr);
}

TEST_F(HeadFollowerTest, AReplayBesideIngestIsInOrderAfterwards) {
  heads_.Clear();
  heads_.NoteWriter(kTrial, static_cast<WriterNo>(1), 2);
  heads_.RecoveryStarted({kTrial}, FoldNo{0});
  const HeadChunkPtr third = Make({.sequence = 3});
  const HeadChunkPtr other = Make({.writer = 2, .sequence = 1});
  clock_.Advance(absl::Seconds(1));
  const HeadChunkPtr fourth = Make({.sequence = 4});
  clock_.Advance(absl::Seconds(1));
  const HeadChunkPtr fifth = Make({.sequence = 5});
  heads_.Add({fifth});
  heads_.Add({third, other});
  heads_.Add({fourth});
  heads_.RecoveryDone(kTrial);
  const auto follower = Follow(kTrial, absl::Seconds(60));
  EXPECT_EQ(Sequences(follower->Take(follower->start_index(), 100)), (S{3, 1, 4, 5}));
  const auto stands = follower->StandsAt(follower->start_index());
  EXPECT_EQ(stands.writers[0].gone_sequence, 2U);
  EXPECT_TRUE(stands.has_older);
}

TEST_F(HeadFollowerTest, WritersKeepTheirOrderWhereTheClockSteppedBack) {
  heads_.Clear();
  heads_.RecoveryStarted({kTrial}, FoldNo{0});
  clock_.Advance(absl::Seconds(10));
  heads_.Add({Make({.sequence = 1}), Make({.sequence = 2})});
  clock_.Advance(absl::Seconds(-10));
  heads_.Add({Make({.sequence = 3})});
  heads_.RecoveryDone(kTrial);
  const auto follower = Follow(kTrial, absl::Seconds(60));
  EXPECT_EQ(Sequences(follower->Take(0, 100)), (S{1, 2, 3}));
}

TEST_F(HeadFollowerTest, AFollowedTrialStaysInHeads) {
  Heads heads({.kept_bytes_max = 1, .clock = &clock_});
  heads.RecoveryStarted({}, FoldNo{0});
  auto follower = HeadFollower::Start(heads, kTrial, absl::ZeroDuration());
  ASSERT_TRUE(follower.ok());
  heads.Add({Make({.sequence = 1, .sample_time_us = 7})});
  heads.Folded(heads.PlanFold(std::nullopt, INT64_MAX).folds, FoldNo{1});
  EXPECT_EQ(Sequences((*follower)->Take((*follower)->start_index(), 100)), S{1});
  follower->reset();
  heads.Folded({}, FoldNo{2});
  EXPECT_EQ(heads.kept_bytes(), 0);
  EXPECT_EQ(heads.followed_bytes(), 0);
}

// Several writers, folds and losses of memory in any order: a follower gets each chunk once, in the order
// of its writer, or is told that its place is gone; and no sample that left is older than what is said.
TEST_F(HeadFollowerTest, AnyOrderOfCommitsFoldsAndTakesLosesNothingUnsaid) {
  const std::uint64_t seed = TestSeed();
  std::mt19937_64 random(seed);
  int gone_count = 0;
  for (int round = 0; round < 100; ++round) {
    Heads heads({.followed_bytes_max = static_cast<std::int64_t>(random() % 30) * kBytes,
                 .clock = &clock_});
    heads.RecoveryStarted({}, FoldNo{0});
    std::vector<HeadChunkPtr> all;
    std::map<int, std::uint64_t> newest;
    const auto follower = HeadFollower::Start(heads, kTrial, absl::ZeroDuration());
    ASSERT_TRUE(follower.ok());
    std::uint64_t next = (*follower)->start_index();
    std::vector<HeadChunkPtr> taken_all;
    std::int64_t fold_no = 0;
    for (int step = 0; step < 300; ++step) {
      switch (random() % 5) {
        case 0:
        case 1: {
          std::vector<HeadChunkPtr> group;
          for (std::uint64_t i = random() % 4; i > 0; --i) {
            const int writer = 1 + static_cast<int>(random() % 3);
            const std::uint64_t width = random() % 10 == 0 ? 3 : 1;
            const std::uint64_t first = newest[writer] + 1;
            newest[writer] += width;
            group.push_back(
                Make({.writer = writer,
                      .sequence = newest[writer],
                      .first_sequence = first,
                      .sample_time_us = static_cast<std::int64_t>(1 + random() % 1000)}));
          }
          heads.Add(group);
          heads.Add(group);  // a repeat
          all.insert(all.end(), group.begin(), group.end());
          break;
        }
        case 2:
          heads.Folded(
              heads.PlanFold(std::nullopt, static_cast<std::int64_t>(random() % 8) * kBytes).folds,
              static_cast<FoldNo>(++fold_no));
          break;
        case 3:
          clock_.Advance(absl::Seconds(random() % 20));
          heads.DropOldFollowed();
          break;
        default: {
          const auto taken = (*follower)->Take(next, static_cast<std::int64_t>(random() % 5));
          if (taken.outcome == Outcome::kTaken) {
            taken_all.insert(taken_all.end(), taken.chunks.begin(), taken.chunks.end());
            next = taken.next_index;
            break;
          }
          ASSERT_EQ(taken.outcome, Outcome::kGone);
          ++gone_count;
          std::int64_t oldest_us = INT64_MAX;
          for (std::size_t i = next; i < taken.begin_index; ++i) {
            oldest_us = std::min(oldest_us, OldestTime(*all[i]));
          }
          ASSERT_LE((*follower)->OldestGone(next), oldest_us) << "seed " << seed;
          taken_all.insert(taken_all.end(), all.begin() + static_cast<std::ptrdiff_t>(next),
                           all.begin() + static_cast<std::ptrdiff_t>(taken.begin_index));
          next = taken.begin_index;
        }
      }
      ASSERT_LE(heads.followed_bytes(), 30 * kBytes);
    }
    ASSERT_LE(taken_all.size(), all.size());
    for (std::size_t i = 0; i < taken_all.size(); ++i) {
      ASSERT_EQ(taken_all[i], all[i]) << "seed " << seed << ", round " << round << ", chunk " << i;
    }
    for (const auto& stand : (*follower)->StandsAt(next).writers) {
      ASSERT_EQ(stand.newest_sequence, newest[Value(stand.writer_no)]);
      ASSERT_LE(stand.gone_sequence, stand.index_sequence);
    }
  }
  EXPECT_GT(gone_count, 0);
}

TEST_F(HeadFollowerTest, FollowersOfOtherThreadsGetEveryChunkOnceInOrder) {
  Heads heads;  // the real clock
  heads.RecoveryStarted({}, FoldNo{0});
  constexpr std::uint64_t kChunks = 3000;
  std::atomic<bool> stop{false};
  std::vector<std::unique_ptr<HeadFollower>> followers;
  for (int i = 0; i < 3; ++i) {
    auto follower = HeadFollower::Start(heads, kTrial, absl::ZeroDuration());
    ASSERT_TRUE(follower.ok());
    followers.push_back(*std::move(follower));
  }
  std::vector<std::vector<std::uint64_t>> taken(3);
  std::vector<Worker> threads;
  for (std::size_t i = 0; i < 3; ++i) {
    threads.emplace_back("follower", [&, i] {
      HeadFollower& follower = *followers[i];
      std::uint64_t next = follower.start_index();
      while (taken[i].size() < kChunks && !stop) {
        const std::uint64_t seen = follower.version();
        const auto some = follower.Take(next, 1 << 20);
        for (const HeadChunkPtr& chunk : some.chunks) taken[i].push_back(chunk->sequence);
        next = some.next_index;
        if (some.chunks.empty()) follower.WaitPast(seen, SteadyTime::Now() + absl::Seconds(10));
      }
    });
  }
  threads.emplace_back("folder", [&] {
    for (std::int64_t fold_no = 1; !stop; ++fold_no) {
      const Heads::FoldPlan plan = heads.PlanFold(std::nullopt, 20 * kBytes);
      if (!plan.folds.empty()) heads.Folded(plan.folds, static_cast<FoldNo>(fold_no));
    }
  });
  for (std::uint64_t i = 1; i <= kChunks; ++i) {
    auto chunk = std::make_shared<HeadChunk>(*Make({.sequence = i}));
    chunk->received_time_us = absl::ToUnixMicros(absl::Now());
    heads.Add({chunk});
  }
  for (int i = 0; i < 3; ++i) threads[static_cast<std::size_t>(i)].Join();
  stop = true;
  for (const auto& sequences : taken) {
    ASSERT_EQ(sequences.size(), kChunks);
    for (std::uint64_t i = 0; i < kChunks; ++i) ASSERT_EQ(sequences[i], i + 1);
  }
}

}  // namespace
}  // namespace stepwell
