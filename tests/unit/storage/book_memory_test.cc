#include "storage/book_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace stepwell {
namespace {

RememberedBook Book(std::size_t bytes, std::int64_t epoch = 1) {
  TrialBook book;
  book.writers.push_back({.agent_id = std::string(bytes, 'a')});
  return {std::make_shared<const TrialBook>(std::move(book)), {BookChanges::Moment{5}, epoch}};
}

TEST(BookMemoryTest, KeepsWhatWasUsedLastWithinItsBytes) {
  BookMemory memory(10'000);
  memory.Note(TrialId{1}, Book(3000));
  memory.Note(TrialId{2}, Book(3000));
  ASSERT_TRUE(memory.Find(TrialId{1}));
  memory.Note(TrialId{3}, Book(3000));
  EXPECT_FALSE(memory.Find(TrialId{2})) << "longest out of use";
  EXPECT_TRUE(memory.Find(TrialId{1}));
  EXPECT_TRUE(memory.Find(TrialId{3}));
  EXPECT_GE(memory.bytes(), 6000u);
  EXPECT_LE(memory.bytes(), 10'000u);
}

// 1000 trials that were asked about once do not keep the series of all of them.
TEST(BookMemoryTest, SeriesCount) {
  constexpr std::size_t kBytesMax = 1'000'000;
  BookMemory memory(kBytesMax);
  Series series;
  series.definition.key.metric_group = "gpu";
  series.definition.key.labels = {{"rank", "0"}};
  const std::vector<Series> many(100, series);
  std::vector<std::weak_ptr<const std::vector<Series>>> held;
  for (int trial = 1; trial <= 1000; ++trial) {
    TrialBook book;
    book.series = std::make_shared<const std::vector<Series>>(many);
    held.push_back(book.series);
    memory.Note(TrialId{trial},
                {std::make_shared<const TrialBook>(std::move(book)), {BookChanges::Moment{5}, 1}});
  }
  const auto alive =
      std::count_if(held.begin(), held.end(), [](const auto& each) { return !each.expired(); });
  EXPECT_GT(alive, 0);
  EXPECT_LE(static_cast<std::size_t>(alive) * many.size() * sizeof(Series), kBytesMax);
  EXPECT_LE(memory.bytes(), kBytesMax);
}

TEST(BookMemoryTest, ANewerBookTakesThePlaceOfTheFormer) {
  BookMemory memory(10'000);
  memory.Note(TrialId{1}, Book(3000, 1));
  const std::size_t bytes = memory.bytes();
  memory.Note(TrialId{1}, Book(3000, 2));
  EXPECT_EQ(memory.Find(TrialId{1})->moment.owner_epoch, 2);
  EXPECT_EQ(memory.bytes(), bytes);
  memory.Note(TrialId{1}, Book(20'000, 3));
  EXPECT_FALSE(memory.Find(TrialId{1})) << "neither the former nor one that is too large";
  EXPECT_EQ(memory.bytes(), 0u);
  memory.Note(TrialId{1}, Book(10));
  memory.Clear();
  EXPECT_FALSE(memory.Find(TrialId{1}));
  EXPECT_EQ(memory.bytes(), 0u);
}

}  // namespace
}  // namespace stepwell
