#include "server/missing_ranks.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <string>
#include <vector>

namespace stepwell {
namespace {

constexpr std::int32_t kSampler = -1;
constexpr std::int32_t kInt32Max = std::numeric_limits<std::int32_t>::max();

struct Opened {
  std::int32_t attempt;
  std::int32_t rank;
  std::int32_t world_size;
};

std::vector<WriterRecord> Writers(const std::vector<Opened>& opened) {
  std::vector<WriterRecord> writers;
  for (const Opened& one : opened) {
    WriterRecord& writer = writers.emplace_back();
    writer.writer_no = WriterNo{static_cast<std::int32_t>(writers.size())};
    writer.attempt = one.attempt;
    if (one.rank != kSampler) writer.rank = one.rank;
    writer.world_size = one.world_size;
  }
  return writers;
}

TEST(MissingRanksTest, AreThoseBelowTheSizeThatNobodyOpened) {
  struct Row {
    std::string name;
    std::vector<Opened> opened;
    std::vector<std::int32_t> expected;
  };
  const std::vector<Row> rows = {
      {"no writers", {}, {}},
      {"size unknown", {{1, 0, 0}, {1, 3, 0}}, {}},
      {"all", {{1, 1, 2}, {1, 0, 2}}, {}},
      {"rank 1 of 2", {{1, 0, 2}}, {1}},
      {"the first", {{1, 3, 4}, {1, 2, 4}}, {0, 1}},
      {"a rank with two writers", {{1, 0, 3}, {1, 0, 3}, {1, 2, 3}}, {1}},
      {"the largest size counts", {{1, 0, 2}, {1, 1, 4}}, {2, 3}},
      {"one gave no size", {{1, 0, 0}, {1, 1, 3}}, {2}},
      {"a rank beyond the size", {{1, 7, 0}, {1, 0, 2}}, {1}},
      {"the newest attempt counts", {{1, 0, 4}, {2, 0, 2}, {2, 1, 2}}, {}},
      {"and what it lacks", {{1, 0, 2}, {1, 1, 2}, {2, 1, 2}}, {0}},
      {"samplers have no rank", {{1, 0, 2}, {1, kSampler, 2}}, {1}},
      {"nor do they begin an attempt", {{1, 0, 2}, {2, kSampler, 8}}, {1}},
      {"samplers alone", {{1, kSampler, 8}}, {}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const MissingRanks missing = FindMissingRanks(Writers(row.opened));
    EXPECT_EQ(missing.first, row.expected);
    EXPECT_EQ(missing.count, static_cast<std::int32_t>(row.expected.size()));
  }
}

TEST(MissingRanksTest, TheFirstThousandOfWhateverAClientSays) {
  const MissingRanks missing = FindMissingRanks(Writers({{1, 2, kInt32Max}, {1, 5000, kInt32Max}}));
  EXPECT_EQ(missing.count, kInt32Max - 2);
  ASSERT_EQ(missing.first.size(), 1000U);
  EXPECT_EQ(missing.first[1], 1);
  EXPECT_EQ(missing.first[2], 3);
  EXPECT_EQ(missing.first[999], 1000);
}

TEST(MissingRanksTest, NothingIsSaidOfWritersThatWereNotAllRead) {
  EXPECT_EQ(
      FindMissingRanks(std::vector<WriterRecord>(kWritersReadMax, Writers({{1, 0, 2}})[0])).count,
      0);
}

}  // namespace
}  // namespace stepwell
