#include "client/demo/rank_group.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <vector>

namespace stepwell::demo {
namespace {

TEST(RankGroupTest, AllRanksGetTheSameMeans) {
  for (const int rank_count : {1, 2, 3, 5}) {
    SCOPED_TRACE(rank_count);
    constexpr std::size_t kCount = 1001;
    const auto group = RankGroup::Make(rank_count, kCount);
    ASSERT_NE(group, nullptr);
    const int status = group->Run([&](int rank) {
      for (int round = 0; round < 50; ++round) {
        std::vector<float> values(kCount);
        for (std::size_t i = 0; i < kCount; ++i) {
          values[i] = static_cast<float>(round + rank) + static_cast<float>(i);
        }
        if (!group->ReduceMean(rank, values)) return 2;
        for (std::size_t i = 0; i < kCount; ++i) {
          const float mean = static_cast<float>(round) + static_cast<float>(i) +
                             static_cast<float>(rank_count - 1) / 2;
          if (std::abs(values[i] - mean) > 1e-3f) return 3;
        }
      }
      return 0;
    });
    EXPECT_EQ(status, 0);
  }
}

TEST(RankGroupTest, NobodyWaitsForARankThatIsGone) {
  const auto group = RankGroup::Make(3, 8);
  ASSERT_NE(group, nullptr);
  const int status = group->Run([&](int rank) {
    if (rank == 1) raise(SIGKILL);
    std::vector<float> values(8);
    return group->ReduceMean(rank, values) ? 0 : 4;
  });
  EXPECT_EQ(status, 4);
}

TEST(RankGroupTest, TheWorstRankIsTheAnswer) {
  const auto group = RankGroup::Make(3, 8);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(group->Run([](int rank) { return rank; }), 2);
}

}  // namespace
}  // namespace stepwell::demo
