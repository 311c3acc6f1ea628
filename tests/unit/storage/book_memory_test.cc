#include "storage/book_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

RememberedBook Book(std::size_t bytes, std::int64_t epoch = 1) {
  TrialBook book;
  book.writers.push_back({.agent_id = std::string(bytes, 'a')});
  return {std::make_shared<const TrialBook>(std::move(book)), BookChanges::Moment{5}, epoch};
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

TEST(BookMemoryTest, ANewerBookTakesThePlaceOfTheFormer) {
  BookMemory memory(10'000);
  memory.Note(TrialId{1}, Book(3000, 1));
  const std::size_t bytes = memory.bytes();
  memory.Note(TrialId{1}, Book(3000, 2));
  EXPECT_EQ(memory.Find(TrialId{1})->owner_epoch, 2);
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
