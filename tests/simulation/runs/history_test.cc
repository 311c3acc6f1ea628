// The simulation's judge itself goes red: on a sample that is missing and in no frame that a gap names,
// however roughly gaps count.
#include "tests/simulation/history.h"

#include <gtest/gtest.h>

namespace stepwell::simulation {
namespace {

constexpr int kRank = 0;

// Two samples that did not arrive, in frames of sequences 5 and 6.
History TwoMissing() {
  History history;
  for (std::uint64_t nth = 1; nth <= 2; ++nth) {
    history.Recorded(NumberOf(kRank, nth));
    history.Framed(NumberOf(kRank, nth), 4 + nth, 4 + nth);
  }
  return history;
}

struct Row {
  const char* name;
  Declared declared;
  const char* wrong;
};

const Row kRows[] = {
    {"both frames are named and counted", {2, true, {{5, 6}}}, ""},
    {"by two gaps", {2, true, {{5, 5}, {6, 9}}}, ""},
    {"both are named, their count is rough", {7, false, {{4, 6}}}, ""},
    {"one is named, and its count is rough",
     {7, false, {{5, 5}}},
     "sample 2 of rank 0 is missing, of sequences 6 to 6, and no gap names one of them"},
    {"none is named, as of what a ring dropped",
     {2, true, {}},
     "sample 1 of rank 0 is missing, of sequences 5 to 5, and no gap names one of them"},
    {"both are named, and counted as one",
     {1, true, {{5, 6}}},
     "rank 0: 2 samples are missing, gaps declare 1; the first is sample 1 of rank 0"},
};

TEST(HistoryTest, WhatIsMissingWasInAFrameThatAGapNames) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    History history = TwoMissing();
    history.Ended(kRank, row.declared);
    EXPECT_EQ(history.what(), row.wrong);
  }
}

TEST(HistoryTest, OfASpoolThatWasSetBackWhatIsRecordedAfterwardsIsHeldAsElsewhere) {
  struct SetBackRow {
    const char* name;
    std::uint64_t sequence;  // of the frame that holds what was recorded afterwards
    const char* wrong;
  };
  for (const SetBackRow& row : {SetBackRow{"its frame is named", 9, ""},
                                SetBackRow{"no gap names its frame", 10,
                                           "sample 3 of rank 0 is missing, of sequences 10 to 10, "
                                           "and no gap names one of them"}}) {
    SCOPED_TRACE(row.name);
    History history = TwoMissing();
    // Of the rank behind it nothing is marked.
    history.Recorded(NumberOf(kRank + 1, 1));
    history.SetBack(kRank);
    history.Recorded(NumberOf(kRank, 3));
    history.Framed(NumberOf(kRank, 3), row.sequence, row.sequence);
    history.Ended(kRank, {7, false, {{9, 9}}});
    EXPECT_EQ(history.what(), row.wrong);
  }
}

// A gap named its frame in the copy already (seed 3134524648): the ack of what was committed since is no lie, that of what is
// told alone is one.
TEST(HistoryTest, OfADatabaseThatWasSetBackTheAckOfWhatWasCommittedMayArrive) {
  for (const bool is_committed : {true, false}) {
    SCOPED_TRACE(is_committed);
    const SampleNumber sample = NumberOf(kRank, 1);
    const Uuid writer = Uuid::Random();
    History history;
    history.Recorded(sample);
    history.Framed(sample, 1, UINT64_MAX);
    history.Told(kRank, 1, 1);
    history.KeepDatabase();
    history.Sent(writer, 5, {sample});
    if (is_committed) history.Committed(SeriesNo{1}, sample);
    history.PutDatabaseBack(/*is_noticed=*/true);
    history.Acked(writer, 5);
    EXPECT_EQ(
        history.what(),
        is_committed ? "" : "sample 1 of rank 0 is acked with sequence 5 and not in the database");
  }
}

TEST(HistoryTest, WhatLeftItsRingForNoFrameIsMissing) {
  History history;
  history.Recorded(NumberOf(kRank, 1));
  history.Framed(NumberOf(kRank, 1), 6, 5);
  history.Ended(kRank, {1, false, {{1, 9}}});
  EXPECT_TRUE(history.wrong());
}

}  // namespace
}  // namespace stepwell::simulation
