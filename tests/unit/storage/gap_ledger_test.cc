#include "storage/gap_ledger.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace stepwell {
namespace {

Gap Sequences(std::uint64_t first, std::uint64_t last) {
  Gap gap;
  gap.writer_no = WriterNo{1};
  gap.cause = GapCause::kSpoolFull;
  gap.sample_count = 1;
  gap.first_sequence = first;
  gap.last_sequence = last;
  return gap;
}

Gap Times(std::int64_t first, std::int64_t last) {
  Gap gap = Sequences(0, 0);
  gap.first_time_us = first;
  gap.last_time_us = last;
  return gap;
}

TEST(GapLedgerTest, TellsWhatGoesOn) {
  Gap other_writer = Sequences(3, 4), other_cause = Sequences(3, 4), other_group = Sequences(3, 4),
      other_reason = Sequences(3, 4);
  other_writer.writer_no = WriterNo{2};
  other_cause.cause = GapCause::kRejected;
  other_group.metric_group = "gpu";
  other_reason.reason = "why";
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
  struct Row {
    std::string name;
    Gap known, next;
    bool goes_on;
  };
  for (const Row& row : std::vector<Row>{
           {"the next sequence", Sequences(1, 2), Sequences(3, 4), true},
           {"overlapping", Sequences(1, 3), Sequences(3, 4), true},
           {"a hole between", Sequences(1, 2), Sequences(4, 4), false},
           {"before it", Sequences(5, 6), Sequences(3, 4), false},
           {"another writer", Sequences(1, 2), other_writer, false},
           {"another cause", Sequences(1, 2), other_cause, false},
           {"another group", Sequences(1, 2), other_group, false},
           {"another reason", Sequences(1, 2), other_reason, false},
           {"with and without sequence", Sequences(1, 2), Times(1, 2), false},
           {"soon after", Times(1, 100), Times(100 + kGapOngoingUs, 100 + kGapOngoingUs), true},
           {"long after", Times(1, 100), Times(101 + kGapOngoingUs, 101 + kGapOngoingUs), false},
           {"long before", Times(2 * kGapOngoingUs, 2 * kGapOngoingUs), Times(1, 2), false},
           {"time not known", Times(0, 0), Times(1, 2), true},
           {"from end to end of time", Times(kMin, kMin), Times(kMax, kMax), false},
       }) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(GapGoesOn(row.known, row.next), row.goes_on);
  }
}

TEST(GapLedgerTest, ExtendsWhatIsStored) {
  GapLedger ledger;
  ledger.AddStored(TrialId{1}, 17, Sequences(1, 2));
  ledger.AddStored(TrialId{2}, 18, Sequences(1, 2));
  ledger.Note(TrialId{1}, Sequences(3, 3));
  ledger.Note(TrialId{1}, Sequences(4, 9));
  ledger.Note(TrialId{1}, Sequences(20, 20));
  const std::vector<GapChange> changes = ledger.TakeChanges();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].gap_no, 17);
  EXPECT_EQ(changes[0].gap.first_sequence, 1u);
  EXPECT_EQ(changes[0].gap.last_sequence, 9u);
  EXPECT_EQ(changes[0].gap.sample_count, 3);
  EXPECT_EQ(changes[1].gap_no, 0);
  EXPECT_TRUE(ledger.TakeChanges().empty());
}

TEST(GapLedgerTest, KeepsUnknownTimesOutOfTheRange) {
  Gap known = Times(0, 0);
  ExtendGap(known, Times(500, 600));
  EXPECT_EQ(known.first_time_us, 500);
  EXPECT_EQ(known.last_time_us, 600);
  ExtendGap(known, Times(0, 0));
  ExtendGap(known, Times(300, 400));
  EXPECT_EQ(known.first_time_us, 300);
  EXPECT_EQ(known.last_time_us, 600);
}

TEST(GapLedgerTest, PutsEverythingIntoTheLastRowPastTheBound) {
  GapLedger ledger;
  ledger.AddStored(TrialId{1}, 5, Sequences(1, 1));
  ledger.SetRowCount(TrialId{1}, WriterNo{1}, GapCause::kSpoolFull, kGapRowsMax);
  Gap elsewhere = Sequences(100, 101);
  elsewhere.metric_group = "gpu";
  ledger.Note(TrialId{1}, elsewhere);
  const std::vector<GapChange> changes = ledger.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].gap_no, 5);
  EXPECT_EQ(changes[0].gap.last_sequence, 101u);
  EXPECT_EQ(changes[0].gap.metric_group, "");
}

TEST(GapLedgerTest, FindsTheLastRowAgainWhenItStandsForAllGroups) {
  GapLedger ledger;
  Gap stored = Sequences(1, 1);
  stored.metric_group = "gpu";
  ledger.AddStored(TrialId{1}, 4, Sequences(50, 50));
  ledger.AddStored(TrialId{1}, 5, stored);
  ledger.SetRowCount(TrialId{1}, WriterNo{1}, GapCause::kSpoolFull, kGapRowsMax);
  Gap other = Sequences(10, 10);
  other.metric_group = "cpu";
  ledger.Note(TrialId{1}, other);
  ledger.Note(TrialId{1}, Sequences(11, 11));
  ledger.Note(TrialId{1}, Sequences(51, 51));
  const std::vector<GapChange> changes = ledger.TakeChanges();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].gap_no, 5);
  EXPECT_EQ(changes[0].gap.last_sequence, 11u);
  EXPECT_EQ(changes[1].gap_no, 4);
  EXPECT_EQ(changes[1].gap.last_sequence, 51u);
}

}  // namespace
}  // namespace stepwell
