#include "client/agent/waiting_writers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stepwell::agent {
namespace {

using State = AsideWriter::State;
using ::testing::ElementsAre;

std::vector<std::string> TakeAll(WaitingWriters& waiting) {
  std::vector<std::string> names;
  while (const auto taken = waiting.Take()) names.push_back(taken->name);
  return names;
}

TEST(WaitingWritersTest, NewOnesComeFirstEachInItsTurn) {
  WaitingWriters waiting;
  waiting.Add("drained", {.state = State::kUnsent});
  waiting.Add("new 1", {});
  waiting.Add("delivered", {.state = State::kDelivered});
  waiting.Add("new 2", {});
  waiting.Add("refused", {.state = State::kRefused});
  EXPECT_EQ(waiting.count(), 4u);
  EXPECT_EQ(waiting.new_count(), 2u);
  waiting.Drop("new 1");
  waiting.Drop("nobody");
  EXPECT_THAT(TakeAll(waiting), ElementsAre("new 2", "drained", "refused"));
  EXPECT_TRUE(waiting.Contains("delivered"));
  EXPECT_EQ(waiting.count(), 0u);
  EXPECT_EQ(waiting.name_count(), 1u);
}

TEST(WaitingWritersTest, OneThatCameBackAndWentAgainIsGivenOnce) {
  WaitingWriters waiting;
  waiting.Add("a", {});
  waiting.Drop("a");
  waiting.Add("a", {});
  EXPECT_THAT(TakeAll(waiting), ElementsAre("a"));
}

// As readdir may give a name that is renamed meanwhile.
TEST(WaitingWritersTest, OneThatIsListedTwiceWaitsOnceAsItFirstCame) {
  WaitingWriters waiting;
  waiting.Add("a", {State::kUnsent, 7, 5});
  waiting.Add("a", {});
  EXPECT_EQ(waiting.name_count(), 1u);
  EXPECT_EQ(waiting.new_count(), 0u);
  EXPECT_EQ(waiting.unacked_bytes(), 7);
  EXPECT_THAT(TakeAll(waiting), ElementsAre("a"));
}

TEST(WaitingWritersTest, TellsWhatIsLeftToDo) {
  const struct {
    State state;
    bool all_done, all_settled;
  } rows[] = {{State::kNew, false, false},
              {State::kUnsent, false, false},
              {State::kRefused, false, true},
              {State::kSpooled, true, true},
              {State::kDelivered, true, true}};
  for (const auto& row : rows) {
    SCOPED_TRACE(static_cast<int>(row.state));
    WaitingWriters waiting;
    EXPECT_TRUE(waiting.all_done() && waiting.all_settled());
    waiting.Add("a", {row.state, 7, 5});
    EXPECT_EQ(waiting.all_done(), row.all_done);
    EXPECT_EQ(waiting.all_settled(), row.all_settled);
    EXPECT_EQ(waiting.unacked_bytes(), 7);
    EXPECT_EQ(waiting.acked_sum(), 5u);
    waiting.Drop("a");
    EXPECT_TRUE(waiting.all_done() && waiting.all_settled());
    EXPECT_EQ(waiting.unacked_bytes(), 0);
    EXPECT_EQ(waiting.acked_sum(), 0u);
  }
}

}  // namespace
}  // namespace stepwell::agent
