#include "client/agent/spool_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "tests/unit/agent/test_seed.h"

namespace stepwell::agent {
namespace {

struct Row {
  const char* name;
  std::int64_t bytes_max;
  std::vector<std::int64_t> unacked;
  std::vector<std::int64_t> unacked_max;
  std::vector<std::int64_t> max;
};

const Row kRows[] = {
    {"nobody", 100, {}, {}, {}},
    {"one", 100, {30}, {100}, {100}},
    {"one past it", 100, {130}, {100}, {100}},
    {"those that are done leave their part to the one that is not",
     1000,
     {0, 0, 0, 900},
     {100, 100, 100, 1000},
     {25, 25, 25, 925}},
    {"exactly full", 100, {40, 60}, {40, 60}, {40, 60}},
    {"past it the largest gives", 1000, {10, 90, 1500}, {900, 900, 900}, {10, 90, 900}},
    {"past it the two largest give", 1000, {100, 600, 800}, {450, 450, 450}, {100, 450, 450}},
    {"past it all alike", 90, {50, 50, 50}, {30, 30, 30}, {30, 30, 30}},
    {"a bound of nothing", 0, {5, 0}, {0, 0}, {0, 0}},
};

TEST(SpoolSharesTest, WhatIsUnackedIsGivenUpOnlyPastTheBoundOfAllAndByTheLargest) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    std::vector<std::int64_t> unacked_max;
    std::vector<std::int64_t> max;
    for (const SpoolBounds& share : ShareBound(row.bytes_max, row.unacked)) {
      unacked_max.push_back(share.unacked_bytes_max);
      max.push_back(share.bytes_max);
    }
    EXPECT_EQ(unacked_max, row.unacked_max);
    EXPECT_EQ(max, row.max);
  }
}

TEST(SpoolSharesTest, KeepsTheBoundAndCutsNobodyWithinIt) {
  std::mt19937_64 random(TestSeed());
  for (int round = 0; round < 10000; ++round) {
    const std::int64_t bytes_max = static_cast<std::int64_t>(random() % 10000);
    std::vector<std::int64_t> unacked(1 + random() % 9);
    for (std::int64_t& own : unacked) own = static_cast<std::int64_t>(random() % 3000);
    const std::vector<SpoolBounds> shares = ShareBound(bytes_max, unacked);
    const bool fits = std::accumulate(unacked.begin(), unacked.end(), std::int64_t{0}) <= bytes_max;
    std::int64_t kept = 0;
    std::int64_t total = 0;
    std::int64_t segments = 0;
    for (std::size_t i = 0; i < unacked.size(); ++i) {
      if (fits) {
        ASSERT_GE(shares[i].unacked_bytes_max, unacked[i]);
      }
      kept += std::min(unacked[i], shares[i].unacked_bytes_max);
      total += shares[i].bytes_max;
      segments += shares[i].segment_bytes_max;
    }
    ASSERT_LE(kept, bytes_max);
    ASSERT_LE(total, bytes_max);
    ASSERT_LE(segments, bytes_max);
  }
}

}  // namespace
}  // namespace stepwell::agent
