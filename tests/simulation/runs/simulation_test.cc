// Thousands of runs of the ingest core, each with its own faults. One that breaks a promise says how it
// is repeated:
//
//   STEPWELL_TEST_SEED=4711 build/release/bin/simulation_tests --gtest_filter='*OneSeedGivesOneRun'
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <map>
#include <string>

#include "tests/simulation/seeds.h"
#include "tests/simulation/world.h"

namespace stepwell::simulation {
namespace {

// Runs that come by nothing prove nothing.
constexpr const char* kComeBy[] = {
    "a chunk committed",    "a chunk repeated",     "a chunk fenced",
    "GAP_CAUSE_RING_FULL",  "GAP_CAUSE_SPOOL_FULL", "GAP_CAUSE_SPOOL_CORRUPT",
    "GAP_CAUSE_SPOOL_LOST", "refused FENCED",       "refused SEQUENCE_HOLE"};

TEST(SimulationTest, OneSeedGivesOneRun) {
  const std::uint64_t seed = FirstSeed();
  const Outcome once = RunSeed(seed);
  const Outcome again = RunSeed(seed);
  std::cout << "digest " << once.digest << std::endl;  // the same in every process
  EXPECT_EQ(once.digest, again.digest);
  EXPECT_EQ(once.wrong, "") << Repeat(seed);
}

class ManySeedsTest : public ::testing::TestWithParam<int> {};

TEST_P(ManySeedsTest, NothingIsLostDoubledOrUndeclaredAndAllArrives) {
  const std::uint64_t first = FirstSeed() + static_cast<std::uint64_t>(GetParam()) * kSeedsPerTest;
  std::size_t acked_count = 0;
  std::map<std::string, int> seen;
  for (std::uint64_t seed = first; seed < first + kSeedsPerTest; ++seed) {
    const Outcome outcome = RunSeed(seed);
    ASSERT_EQ(outcome.wrong, "") << Repeat(seed);
    acked_count += outcome.acked_count;
    for (const auto& [what, count] : outcome.seen) seen[what] += count;
  }
  for (const auto& [what, count] : seen) std::cout << what << ": " << count << "\n";
  if (kSeedsPerTest < 500) return;  // under a sanitizer
  for (const char* const what : kComeBy) EXPECT_TRUE(seen.contains(what)) << what;
  EXPECT_GT(acked_count, 50 * kSeedsPerTest);
}

INSTANTIATE_TEST_SUITE_P(Seeds, ManySeedsTest, ::testing::Range(0, 4));

}  // namespace
}  // namespace stepwell::simulation
