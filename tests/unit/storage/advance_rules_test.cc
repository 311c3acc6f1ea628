#include "storage/advance_rules.h"

#include <gtest/gtest.h>

#include <string>

namespace stepwell {
namespace {

WriterAdvance Advance(std::uint64_t first, std::uint64_t last,
                      std::optional<WriterState> closing = std::nullopt) {
  WriterAdvance advance;
  advance.generation = 3;
  advance.first_sequence = first;
  advance.last_sequence = last;
  advance.closing = closing;
  return advance;
}

WriterProgress Stored(std::uint64_t committed, WriterState state = WriterState::kOpen,
                      std::uint64_t generation = 3) {
  return {.generation = generation, .committed_sequence = committed, .state = state};
}

TEST(AdvanceRulesTest, JudgesEveryCase) {
  constexpr auto kClosed = WriterState::kClosed;
  struct Row {
    std::string name;
    WriterAdvance advance;
    std::optional<WriterProgress> stored;
    AdvanceOutcome outcome;
    std::uint64_t committed;
  };
  for (const Row& row : std::vector<Row>{
           {"next", Advance(6, 8), Stored(5), AdvanceOutcome::kCommitted, 8},
           {"repeat", Advance(4, 5), Stored(5), AdvanceOutcome::kRepeat, 5},
           {"hole", Advance(7, 8), Stored(5), AdvanceOutcome::kMismatch, 5},
           {"overlap", Advance(5, 6), Stored(5), AdvanceOutcome::kMismatch, 5},
           {"older generation", Advance(6, 6), Stored(5, WriterState::kOpen, 4),
            AdvanceOutcome::kFenced, 5},
           {"newer than stored, after a restore", Advance(6, 6), Stored(5, WriterState::kOpen, 2),
            AdvanceOutcome::kFenced, 5},
           {"no such writer", Advance(1, 1), std::nullopt, AdvanceOutcome::kFenced, 0},
           {"closed before", Advance(6, 6), Stored(5, kClosed), AdvanceOutcome::kFenced, 5},
           {"repeat of a closed one", Advance(5, 5), Stored(5, kClosed), AdvanceOutcome::kRepeat,
            5},
           {"close", Advance(6, 5, kClosed), Stored(5), AdvanceOutcome::kCommitted, 5},
           {"close again", Advance(6, 5, kClosed), Stored(5, kClosed), AdvanceOutcome::kRepeat, 5},
           {"close too early", Advance(5, 4, kClosed), Stored(5), AdvanceOutcome::kMismatch, 5},
           {"close too late", Advance(9, 8, kClosed), Stored(5), AdvanceOutcome::kMismatch, 5},
           {"first close of an empty writer", Advance(1, 0, kClosed), Stored(0),
            AdvanceOutcome::kCommitted, 0},
       }) {
    SCOPED_TRACE(row.name);
    const AdvanceResult result = JudgeAdvance(row.advance, row.stored);
    EXPECT_EQ(result.outcome, row.outcome);
    EXPECT_EQ(result.committed_sequence, row.committed);
  }
}

TEST(AdvanceRulesTest, TakesAllThatTheDoorTakesAndTheCloseBehindIt) {
  const auto check = [](WriterAdvance advance) {
    CommitGroupRequest request;
    request.advances.push_back(std::move(advance));
    return CheckGroup(request);
  };
  EXPECT_TRUE(check(Advance(1, kSequenceMax)).ok());
  EXPECT_TRUE(check(Advance(kSequenceMax, kSequenceMax)).ok());
  EXPECT_TRUE(check(Advance(kSequenceMax + 1, kSequenceMax, WriterState::kClosed)).ok());
  EXPECT_EQ(check(Advance(1, kSequenceMax + 1)).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(check(Advance(0, 1)).code(), absl::StatusCode::kInvalidArgument);
}

TEST(AdvanceRulesTest, KnowsTheCloseThatARepeatBrings) {
  constexpr auto kDied = WriterState::kDied;
  EXPECT_TRUE(RepeatCloses(Advance(4, 5, kDied), Stored(5)));
  EXPECT_FALSE(RepeatCloses(Advance(4, 5), Stored(5)));
  EXPECT_FALSE(RepeatCloses(Advance(4, 4, kDied), Stored(5)));
  EXPECT_FALSE(RepeatCloses(Advance(4, 5, kDied), Stored(5, WriterState::kClosed)));
  EXPECT_FALSE(RepeatCloses(Advance(4, 5, kDied), Stored(5, WriterState::kOpen, 9)));
}

TEST(AdvanceRulesTest, SeesACommitInDoubt) {
  constexpr auto kClosed = WriterState::kClosed;
  EXPECT_TRUE(ShowsCommitted(Advance(4, 5), Stored(5)));
  EXPECT_TRUE(ShowsCommitted(Advance(4, 5), Stored(9)));
  EXPECT_FALSE(ShowsCommitted(Advance(4, 5), Stored(3)));
  EXPECT_FALSE(ShowsCommitted(Advance(6, 5, kClosed), Stored(5))) << "still open";
  EXPECT_TRUE(ShowsCommitted(Advance(6, 5, kClosed), Stored(5, kClosed)));
  EXPECT_TRUE(ShowsCommitted(Advance(6, 5, kClosed), Stored(5, WriterState::kOpen, 4)));
}

}  // namespace
}  // namespace stepwell
