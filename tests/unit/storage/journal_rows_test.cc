#include "storage/journal_rows.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

// One chunk, that is, or as many as `chunk_bytes` says.
WriterAdvance Advance(std::int64_t trial, std::int32_t writer, std::uint64_t first,
                      const std::vector<std::size_t>& chunk_bytes) {
  WriterAdvance advance;
  advance.trial_id = TrialId{trial};
  advance.writer_no = WriterNo{writer};
  advance.first_sequence = first;
  advance.last_sequence = first - 1;
  for (const std::size_t bytes : chunk_bytes) {
    advance.payload.append(bytes, static_cast<char>('a' + advance.cuts.size() % 26));
    advance.cuts.push_back({++advance.last_sequence, advance.payload.size()});
  }
  return advance;
}

std::vector<JournalRowPlan> Plan(const std::vector<WriterAdvance>& advances) {
  std::vector<const WriterAdvance*> pointers;
  for (const WriterAdvance& advance : advances) pointers.push_back(&advance);
  return PlanJournalRows(pointers);
}

// "trial: writer first-last (bytes), ..." of each row.
std::vector<std::string> Shown(const std::vector<JournalRowPlan>& rows) {
  std::vector<std::string> shown;
  for (const JournalRowPlan& row : rows) {
    std::string& text = shown.emplace_back(absl::StrCat(Value(row.trial_id), ":"));
    for (const JournalRange& range : row.ranges) {
      absl::StrAppend(&text, " ", Value(range.advance->writer_no), " ", range.first_sequence, "-",
                      range.last_sequence, " (", range.payload.size(), ")");
    }
  }
  return shown;
}

TEST(JournalRowsTest, FillsRowsWithChunksOfATrial) {
  using Rows = std::vector<std::string>;
  struct Case {
    const char* name;
    std::vector<WriterAdvance> advances;
    Rows rows;
  };
  WriterAdvance uncut = Advance(1, 1, 1, {5000, 5000});
  uncut.cuts.clear();
  const Case cases[] = {
      {"nothing", {}, {}},
      {"only closes", {Advance(1, 1, 7, {})}, {}},
      {"two writers",
       {Advance(1, 1, 1, {10}), Advance(1, 2, 5, {20})},
       {"1: 1 1-1 (10) 2 5-5 (20)"}},
      {"chunks of a writer in one range", {Advance(1, 1, 3, {10, 0, 30})}, {"1: 1 3-5 (40)"}},
      {"two trials",
       {Advance(1, 1, 1, {10}), Advance(2, 1, 1, {10})},
       {"1: 1 1-1 (10)", "2: 1 1-1 (10)"}},
      {"a writer is cut between chunks",
       {Advance(1, 1, 1, {3000, 3000, 3000, 3000, 3000})},
       {"1: 1 1-2 (6000)", "1: 1 3-4 (6000)", "1: 1 5-5 (3000)"}},
      {"the next writer goes on in its last row",
       {Advance(1, 1, 1, {3000, 6000}), Advance(1, 2, 1, {1000, 1000})},
       {"1: 1 1-1 (3000)", "1: 1 2-2 (6000) 2 1-1 (1000)", "1: 2 2-2 (1000)"}},
      {"a long chunk stands alone",
       {Advance(1, 1, 1, {10, 100'000, 10, 0})},
       {"1: 1 1-1 (10)", "1: 1 2-2 (100000)", "1: 1 3-4 (10)"}},
      {"without cuts it is one range", {uncut}, {"1: 1 1-2 (10000)"}},
      {"an empty chunk", {Advance(1, 1, 1, {0})}, {"1: 1 1-1 (0)"}},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.name);
    EXPECT_EQ(Shown(Plan(each.advances)), each.rows);
  }
}

// Whatever comes: each sequence and each byte is in one row, in order, and a row of several chunks is short.
TEST(JournalRowsTest, LoseNothing) {
  std::mt19937_64 random(testing::TestSeed());
  for (int round = 0; round < 300; ++round) {
    std::vector<WriterAdvance> advances;
    for (int i = 0; i < 10; ++i) {
      std::vector<std::size_t> chunks;
      for (std::uint64_t left = random() % 12; left > 0; --left) {
        chunks.push_back(random() % (random() % 10 == 0 ? 20'000 : 3000));
      }
      advances.push_back(Advance(i / 3, i, 1 + random() % 5, chunks));
    }
    std::map<const WriterAdvance*, std::string> payloads;
    std::map<const WriterAdvance*, std::uint64_t> next;
    for (const JournalRowPlan& row : Plan(advances)) {
      ASSERT_FALSE(row.ranges.empty());
      std::size_t chunk_count = 0, bytes = 0;
      for (const JournalRange& range : row.ranges) {
        EXPECT_EQ(range.advance->trial_id, row.trial_id);
        const auto [expected, is_first] =
            next.emplace(range.advance, range.advance->first_sequence);
        EXPECT_EQ(range.first_sequence, expected->second);
        expected->second = range.last_sequence + 1;
        payloads[range.advance].append(range.payload);
        chunk_count += range.last_sequence - range.first_sequence + 1;
        bytes += range.payload.size();
      }
      EXPECT_TRUE(chunk_count == 1 || bytes < kJournalRowBytes) << bytes;
    }
    for (const WriterAdvance& advance : advances) {
      EXPECT_EQ(payloads[&advance], advance.payload);
      const std::uint64_t expected = advance.cuts.empty() ? 0 : advance.last_sequence + 1;
      EXPECT_EQ(next[&advance], expected);
    }
  }
}

TEST(JournalRowsTest, SplitsWhatItJoined) {
  const std::vector<WriterAdvance> advances = {Advance(1, 1, 1, {300}), Advance(1, 2, 1, {0}),
                                               Advance(1, 3, 1, {1})};
  const std::vector<JournalRowPlan> rows = Plan(advances);
  ASSERT_EQ(rows.size(), 1u);
  const auto split = SplitPayloads(JoinPayloads(rows[0]), 3);
  ASSERT_TRUE(split.ok()) << split.status();
  EXPECT_EQ(*split, (std::vector<std::string>{advances[0].payload, "", advances[2].payload}));
}

TEST(JournalRowsTest, RefusesWhatDoesNotAddUp) {
  const std::vector<WriterAdvance> advances = {Advance(1, 1, 1, {300})};
  const std::string joined = JoinPayloads(Plan(advances).at(0));
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
