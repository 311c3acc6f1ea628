#include "storage/remembered_snapshot.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

namespace stepwell {
namespace {

using Asked = RememberedSnapshot::Asked;

// Remembers all of each series, and counts what is asked.
class RememberedSnapshotTest : public ::testing::Test {
 protected:
  RememberedSnapshotTest() : snapshot_(std::make_shared<const TrialBook>(), Memory()) {}

  RememberedSnapshot::Memory Memory() {
    RememberedSnapshot::Memory memory;
    memory.ranges = [](const RangeSource&, const std::vector<std::int32_t>& series_nos) {
      RememberedRange all;
      all.start_us = std::numeric_limits<std::int64_t>::min();
      all.end_us = std::numeric_limits<std::int64_t>::max();
      return std::vector(series_nos.size(), std::make_shared<const RememberedRange>(all));
    };
    memory.ask_ahead = [this] { ++ahead_count_; };
    memory.holds = [this](Asked asked) -> absl::StatusOr<bool> {
      asked_.push_back(asked);
      return true;
    };
    return memory;
  }
  void ReadRows() { EXPECT_TRUE(snapshot_.ReadRows({.series_nos = {1, 2}}).ok()); }
  void ReadRollups() {
    EXPECT_TRUE(snapshot_.ReadRollups({.series_nos = {1, 2}, .step_seconds = 10}).ok());
  }
  void Confirm() { EXPECT_TRUE(*snapshot_.ConfirmBook(TrialId{1})); }

  int ahead_count_ = 0;
  std::vector<Asked> asked_;
  RememberedSnapshot snapshot_;
};

TEST_F(RememberedSnapshotTest, TheDatabaseIsAskedOnceAllIsTaken) {
  ReadRollups();
  EXPECT_EQ(ahead_count_, 0);
  ReadRows();
  EXPECT_EQ(ahead_count_, 1);
  Confirm();
  EXPECT_EQ(asked_, std::vector{Asked::kAhead});
  // An answer says nothing of a later time.
  Confirm();
  EXPECT_EQ(asked_, (std::vector{Asked::kAhead, Asked::kNow}));
}

TEST_F(RememberedSnapshotTest, WhatIsTakenAfterTheQuestionIsAskedAgain) {
  ReadRows();
  ReadRollups();
  Confirm();
  ReadRows();
  Confirm();
  EXPECT_EQ(ahead_count_, 1);
  EXPECT_EQ(asked_, (std::vector{Asked::kNow, Asked::kNow}));
}

TEST_F(RememberedSnapshotTest, RowsEndWithTheTimeButAFewAreAllTold) {
  const auto told = [this](std::size_t row_count) {
    RememberedSnapshot::Memory memory = Memory();
    memory.deadline = SteadyTime::Now() - absl::Seconds(1);
    memory.ranges = [row_count](const RangeSource&, const std::vector<std::int32_t>&) {
      RememberedRange all;
      all.start_us = std::numeric_limits<std::int64_t>::min();
      all.end_us = std::numeric_limits<std::int64_t>::max();
      all.rows.resize(row_count);
      for (StoredRow& row : all.rows) row.ticks = std::make_shared<const TickVectors>();
      return std::vector{std::make_shared<const RememberedRange>(all)};
    };
    RememberedSnapshot snapshot(std::make_shared<const TrialBook>(), memory);
    const auto rows = snapshot.ReadRows({.series_nos = {1}});
    EXPECT_TRUE(rows.ok()) << rows.status();
    for (;;) {
      const auto row = (*rows)->Next();
      if (!row.ok() || !*row) return row.status().code();
    }
  };
  EXPECT_EQ(told(200), absl::StatusCode::kOk);
  EXPECT_EQ(told(1000), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(RememberedSnapshotTest, NothingIsAskedAheadOfWhatIsNotRemembered) {
  EXPECT_FALSE(snapshot_.ReadRows({.series_nos = {1}, .start_batch = 1, .end_batch = 2}).ok());
  EXPECT_FALSE(snapshot_.ReadRows({.series_nos = {1}, .fold_no_max = FoldNo{3}}).ok());
  EXPECT_EQ(ahead_count_, 0);
}

}  // namespace
}  // namespace stepwell
