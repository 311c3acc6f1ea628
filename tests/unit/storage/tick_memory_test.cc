#include "storage/tick_memory.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

TickKey Key(std::int64_t tick_no) {
  return {.trial_id = TrialId{1}, .writer_no = 1, .tick_no = tick_no};
}

std::shared_ptr<const std::string> Ticks(const char* text) {
  return std::make_shared<const std::string>(text);
}

TEST(TickMemoryTest, KeepsWhatWasUsedLastWithinItsBytes) {
  TickMemory<std::string> memory(100);
  memory.Note(Key(1), Ticks("one"), 40);
  memory.Note(Key(2), Ticks("two"), 40);
  ASSERT_NE(memory.Find(Key(1)), nullptr);
  memory.Note(Key(3), Ticks("three"), 40);
  EXPECT_EQ(memory.Find(Key(2)), nullptr) << "longest out of use";
  EXPECT_EQ(*memory.Find(Key(1)), "one");
  EXPECT_EQ(*memory.Find(Key(3)), "three");
  EXPECT_EQ(memory.bytes(), 80u);
}

TEST(TickMemoryTest, KeepsNothingThatIsTooLarge) {
  TickMemory<std::string> memory(100);
  memory.Note(Key(1), Ticks("one"), 100);
  memory.Note(Key(2), Ticks("two"), 101);
  EXPECT_EQ(memory.Find(Key(2)), nullptr);
  EXPECT_NE(memory.Find(Key(1)), nullptr) << "and it pushes nothing out";
}

TEST(TickMemoryTest, TakesNothingTwiceAndForgetsAll) {
  TickMemory<std::string> memory(100);
  memory.Note(Key(1), Ticks("one"), 60);
  memory.Note(Key(1), Ticks("one"), 60);
  EXPECT_EQ(memory.bytes(), 60u);
  memory.Clear();
  EXPECT_EQ(memory.Find(Key(1)), nullptr);
  EXPECT_EQ(memory.bytes(), 0u);
  memory.Note(Key(1), Ticks("one"), 60);
  EXPECT_NE(memory.Find(Key(1)), nullptr);
}

TEST(TickMemoryTest, EveryPartOfAKeyTellsRowsApart) {
  TickMemory<std::string> memory(100);
  memory.Note(Key(1), Ticks("one"), 1);
  TickKey key = Key(1);
  key.trial_id = TrialId{2};
  EXPECT_EQ(memory.Find(key), nullptr);
  key = Key(1);
  key.step_seconds = 10;
  EXPECT_EQ(memory.Find(key), nullptr);
  key = Key(1);
  key.recent = true;
  EXPECT_EQ(memory.Find(key), nullptr);
  key = Key(1);
  key.keep_class = 1;
  EXPECT_EQ(memory.Find(key), nullptr);
  key = Key(1);
  key.received_day = 1;
  EXPECT_EQ(memory.Find(key), nullptr);
}

}  // namespace
}  // namespace stepwell
