#include "storage/journal_rows.h"

#include <gtest/gtest.h>

namespace stepwell {
namespace {

WriterAdvance Advance(std::int64_t trial, std::uint64_t first, std::uint64_t last,
                      std::size_t bytes) {
  WriterAdvance advance;
  advance.trial_id = TrialId{trial};
  advance.first_sequence = first;
  advance.last_sequence = last;
  advance.payload.assign(bytes, static_cast<char>('a' + trial));
  return advance;
}

TEST(JournalRowsTest, GivesEachTrialARowAndSeveralToALargeOne) {
  const std::vector<WriterAdvance> advances = {
      Advance(1, 1, 1, 10),
      Advance(1, 1, 2, 20),
      Advance(1, 3, 2, 0),  // only closes
      Advance(2, 1, 1, kJournalRowBytes - 8),
      Advance(2, 1, 1, 0),
      Advance(2, 1, 1, 1),
      Advance(3, 1, 1, kJournalRowBytes * 2),
  };
  std::vector<const WriterAdvance*> pointers;
  for (const WriterAdvance& advance : advances) pointers.push_back(&advance);
  const std::vector<JournalRowPlan> rows = PlanJournalRows(pointers);
  std::vector<std::size_t> counts;
  for (const JournalRowPlan& row : rows) counts.push_back(row.advances.size());
  EXPECT_EQ(counts, (std::vector<std::size_t>{2, 2, 1, 1}));
  EXPECT_EQ(rows[0].trial_id, TrialId{1});
  EXPECT_EQ(JoinPayloads(rows[1]).size(), kJournalRowBytes);
}

TEST(JournalRowsTest, SplitsWhatItJoined) {
  const WriterAdvance a = Advance(1, 1, 1, 300), b = Advance(1, 1, 1, 0), c = Advance(1, 1, 1, 1);
  const std::string joined = JoinPayloads({.trial_id = TrialId{1}, .advances = {&a, &b, &c}});
  const auto split = SplitPayloads(joined, 3);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(*split, (std::vector<std::string>{a.payload, "", c.payload}));
}

TEST(JournalRowsTest, RefusesWhatDoesNotAddUp) {
  const WriterAdvance a = Advance(1, 1, 1, 300);
  const std::string joined = JoinPayloads({.trial_id = TrialId{1}, .advances = {&a}});
  EXPECT_EQ(SplitPayloads(joined, 2).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(SplitPayloads(joined, 0).status().code(), absl::StatusCode::kDataLoss);
  for (const std::size_t bytes : {1, 3, 4, 303}) {
    EXPECT_EQ(SplitPayloads(joined.substr(0, bytes), 1).status().code(),
              absl::StatusCode::kDataLoss);
  }
  EXPECT_EQ(SplitPayloads("\xff\xff\xff\xff", 1).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(SplitPayloads("", 0)->empty());
}

}  // namespace
}  // namespace stepwell
