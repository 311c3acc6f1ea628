// Folds of rows that PostgreSQL refuses: what it refuses is given up, told and passed, and nothing
// else is lost with it.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/contract/fold_store_test.h"

namespace stepwell {
namespace {

using testing::FoldStoreTest;
using testing::kEpoch;
using testing::kNowUs;
using testing::Samples;

class FoldRefusalTest : public FoldStoreTest {
 protected:
  // The database takes no value of 666 or more, as nobody of us had thought of.
  void RefuseBeasts() {
    Run("alter table stepwell.recent add constraint no_beasts check (max < 666)");
  }
  // A chunk for each sequence, with three samples; those of `beasts` are refused.
  std::vector<std::vector<TickTable>> Chunks(int count, const std::set<int>& beasts) {
    std::vector<std::vector<TickTable>> chunks;
    for (int i = 1; i <= count; ++i) {
      TickTable table = Table(3, 1, kNowUs + i * 1'000'000);
      if (beasts.contains(i)) table.columns[1].values[0] = 666;
      chunks.push_back({std::move(table)});
    }
    return chunks;
  }
  static WriterFold FoldOf(const OpenedWriter& writer,
                           const std::vector<std::vector<TickTable>>& chunks) {
    WriterFold fold;
    fold.trial_id = writer.trial_id;
    fold.writer_no = writer.writer_no;
    fold.to_sequence = chunks.size();
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      fold.parts.push_back({kNowUs, &chunks[i], i + 1});
    }
    return fold;
  }
  OpenedWriter NewWriter(const std::string& trial, std::uint64_t committed) {
    const OpenedWriter writer = OpenWriter(trial);
    AddSeries(writer.trial_id, 3);
    CommitTo(writer, 1, committed);
    return writer;
  }
};

TEST_F(FoldRefusalTest, TheRefusedChunksAloneAreGivenUpAndDeclared) {
  RefuseBeasts();
  constexpr int kWriters = 9;
  constexpr int kChunks = 7;
  // Writer 3 has two, side by side; writer 6 has nothing else.
  const std::map<int, std::set<int>> beasts = {{3, {4, 5}}, {6, {1, 2, 3, 4, 5, 6, 7}}};
  std::vector<OpenedWriter> writers;
  std::vector<std::vector<std::vector<TickTable>>> chunks;
  Samples expected;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(NewWriter(absl::StrCat("t", i), kChunks));
    const auto found = beasts.find(i);
    const std::set<int> refused = found == beasts.end() ? std::set<int>{} : found->second;
    chunks.push_back(Chunks(kChunks, refused));
    for (int c = 0; c < kChunks; ++c) {
      if (!refused.contains(c + 1)) Count(writers[i], chunks[i][c], expected);
    }
  }
  std::vector<WriterFold> folds;
  for (int i = 0; i < kWriters; ++i) folds.push_back(FoldOf(writers[i], chunks[i]));
  const auto folded = folds_->Fold(kEpoch, folds);
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(folded->refused_sample_count, 9 * 3);
  EXPECT_EQ(folded->sample_count, (kWriters * kChunks - 9) * 3);
  EXPECT_EQ(Number("select max(fold_no) from stepwell.recent"), Value(folded->fold_no));
  EXPECT_EQ(ReadSamples(), expected);
  ExpectUsageAddsUp();
  for (const OpenedWriter& writer : writers) {
    EXPECT_EQ(Progress(writer).folded_sequence, static_cast<std::uint64_t>(kChunks));
  }
  EXPECT_EQ(Text("select string_agg(concat_ws(' ', trial_id - 1000000000, cause, sample_count, "
                 "first_sequence, last_sequence, (first_time_us - 1728018000000000) / 1000000, "
                 "(last_time_us - 1728018000000000) / 1000000, reason), ', ' order by gap_no) "
                 "from stepwell.gaps"),
            "3 9 6 4 5 4 5 REFUSED_BY_DATABASE, 6 9 21 1 7 1 7 REFUSED_BY_DATABASE");
  // And the next fold is as any other.
  CommitTo(writers[3], kChunks + 1, kChunks + 1);
  const std::vector<TickTable> more = {Table(3, 1, kNowUs + 100'000'000)};
  const auto next =
      folds_->Fold(kEpoch, {FoldStoreTest::FoldOf(writers[3], kChunks, kChunks + 1, more)});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(next->sample_count, 3);
}

TEST_F(FoldRefusalTest, ALedgerThatIsFullIsARefusalToo) {
  const OpenedWriter writer = NewWriter("t", 2);
  const OpenedWriter other = NewWriter("u", 1);
  const auto chunks = Chunks(1, {});
  ASSERT_TRUE(folds_->Fold(kEpoch, {FoldOf(writer, chunks)}).ok());
  Run(absl::StrCat(
      "update stepwell.usage_lines set sample_count = 9223372036854775807 where trial_id = ",
      Value(writer.trial_id)));
  const auto folded =
      folds_->Fold(kEpoch, {FoldStoreTest::FoldOf(writer, 1, 2, chunks[0]), FoldOf(other, chunks)});
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(folded->refused_sample_count, 3);
  EXPECT_EQ(folded->sample_count, 3);
  EXPECT_EQ(Progress(writer).folded_sequence, 2u);
}

// Tables that contradict themselves cannot be laid out at all.
TEST_F(FoldRefusalTest, ATableThatDoesNotFitIsGivenUp) {
  const OpenedWriter writer = NewWriter("t", 3);
  auto chunks = Chunks(3, {});
  chunks[1][0].columns[0].values.clear();
  const auto folded = folds_->Fold(kEpoch, {FoldOf(writer, chunks)});
  ASSERT_TRUE(folded.ok()) << folded.status();
  EXPECT_EQ(folded->sample_count, 6);
  EXPECT_EQ(folded->refused_sample_count, 2);
  EXPECT_EQ(Number("select first_sequence from stepwell.gaps"), 2);
}

TEST_F(FoldRefusalTest, AFoldDeclaresTheGapsOfItsWriters) {
  const OpenedWriter writer = NewWriter("t", 5);
  const std::vector<TickTable> none;
  WriterFold fold = FoldStoreTest::FoldOf(writer, 0, 5, none);
  Gap& gap = fold.gaps.emplace_back();
  gap.cause = GapCause::kSpoolCorrupt;
  gap.first_sequence = 2;
  gap.last_sequence = 3;
  gap.reason = "JOURNAL_DAMAGED";
  ASSERT_TRUE(folds_->Fold(kEpoch, {fold}).ok());
  EXPECT_FALSE(folds_->Fold(kEpoch, {fold}).ok()) << "it is done";
  EXPECT_EQ(Text("select string_agg(concat_ws(' ', writer_no, cause, first_sequence, "
                 "last_sequence, reason), ', ') from stepwell.gaps"),
            "1 7 2 3 JOURNAL_DAMAGED");
}

}  // namespace
}  // namespace stepwell
