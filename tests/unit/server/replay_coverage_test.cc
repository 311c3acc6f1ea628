#include "server/replay_coverage.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "tests/unit/server/test_seed.h"

namespace stepwell {
namespace {

constexpr TrialId kTrial{7};
constexpr WriterNo kWriter{1};

WriterProgress Writer(WriterNo writer_no, std::uint64_t folded, std::uint64_t committed) {
  return {.trial_id = kTrial,
          .writer_no = writer_no,
          .committed_sequence = committed,
          .folded_sequence = folded};
}

TEST(ReplayCoverageTest, AWriterWithoutUnfoldedSequencesMissesNothing) {
  ReplayCoverage coverage;
  coverage.Expect(Writer(kWriter, 5, 5));
  coverage.Cover(kTrial, WriterNo{2}, 1, 9);  // of nobody that is expected
  EXPECT_TRUE(coverage.Missing().empty());
}

TEST(ReplayCoverageTest, KeepsWritersApart) {
  ReplayCoverage coverage;
  coverage.Expect(Writer(kWriter, 5, 9));
  coverage.Expect(Writer(WriterNo{2}, 0, 3));
  coverage.Cover(kTrial, WriterNo{2}, 2, 2);
  coverage.Cover(kTrial, kWriter, 1, 20);
  const auto missing = coverage.Missing();
  ASSERT_EQ(missing.size(), 2u);
  EXPECT_EQ(missing[0].writer_no, WriterNo{2});
  EXPECT_EQ(missing[0].first_sequence, 1u);
  EXPECT_EQ(missing[0].last_sequence, 1u);
  EXPECT_EQ(missing[1].first_sequence, 3u);
}

TEST(ReplayCoverageTest, AgreesWithASetOfNumbers) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](std::uint64_t n) { return random() % n; };
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t folded = below(20);
    const std::uint64_t committed = folded + below(40);
    ReplayCoverage coverage;
    coverage.Expect(Writer(kWriter, folded, committed));
    std::set<std::uint64_t> left;
    for (std::uint64_t i = folded + 1; i <= committed; ++i) left.insert(i);
    for (std::uint64_t covers = below(8); covers > 0; --covers) {
      const std::uint64_t first = 1 + below(60);
      const std::uint64_t last = first + below(10);
      coverage.Cover(kTrial, kWriter, first, last);
      for (std::uint64_t i = first; i <= last; ++i) left.erase(i);
    }
    std::set<std::uint64_t> missing;
    for (const MissingRange& range : coverage.Missing()) {
      ASSERT_LE(range.first_sequence, range.last_sequence);
      for (std::uint64_t i = range.first_sequence; i <= range.last_sequence; ++i) {
        ASSERT_TRUE(missing.insert(i).second);
      }
    }
    ASSERT_EQ(missing, left);
  }
}

}  // namespace
}  // namespace stepwell
