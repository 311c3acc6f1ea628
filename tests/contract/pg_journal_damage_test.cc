// A journal that is damaged in the database: what can be read is read, the rest is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "tests/contract/store_test.h"
#include "tests/support/damaged_table.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;
using testing::StoreTest;
using ::testing::UnorderedElementsAre;

class JournalDamageTest : public StoreTest {
 protected:
  // One row of the journal for each, whose payload is too long to be stored in the row itself, unless it is said
  // how long it is.
  void CommitLong(const OpenedWriter& writer, std::uint64_t sequence, std::size_t bytes = 9000) {
    WriterAdvance advance = Advance(writer, sequence);
    advance.payload = absl::StrCat(sequence, std::string(bytes, 'x'));
    ASSERT_TRUE(ingest_->Commit(Group({advance})).ok());
  }
  // The first sequences of the rows that were whole, and the damage of the others.
  struct Replay {
    std::set<std::uint64_t> whole;
    std::vector<JournalRow> damaged;
  };
  Replay ReplayAll() {
    Replay replay;
    const absl::Status read = ingest_->ReadUnfoldedJournal([&](const JournalRow& row) {
      if (!row.damage.ok()) {
        EXPECT_TRUE(row.payloads.empty());
        replay.damaged.push_back(row);
        return absl::OkStatus();
      }
      EXPECT_EQ(row.payloads.size(), row.ranges.size());
      for (std::size_t i = 0; i < row.ranges.size(); ++i) {
        const std::uint64_t sequence = row.ranges[i].first_sequence;
        EXPECT_EQ(row.payloads[i].substr(0, 1), absl::StrCat(sequence));
        replay.whole.insert(sequence);
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(read.ok()) << read;
    return replay;
  }
};

TEST_F(JournalDamageTest, APayloadThatContradictsItself) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 5; ++i) CommitLong(writer, i);
  Run("update stepwell.journal_0 set payload = '\\xffff' where first_sequences[1] = 2");
  Run("update stepwell.journal_0 set payload = '' where first_sequences[1] = 4");
  const Replay replay = ReplayAll();
  EXPECT_THAT(replay.whole, UnorderedElementsAre(1, 3, 5));
  ASSERT_EQ(replay.damaged.size(), 2u);
  ASSERT_EQ(replay.damaged[0].ranges.size(), 1u);
  EXPECT_EQ(replay.damaged[0].ranges[0].first_sequence, 2u);
  EXPECT_EQ(replay.damaged[0].damage.code(), absl::StatusCode::kDataLoss);
}

TEST_F(JournalDamageTest, ListsOfUnequalLengthOrWithHoles) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 6; ++i) CommitLong(writer, i);
  Run("update stepwell.journal_0 set generations = '{}' where first_sequences[1] = 2");
  Run("update stepwell.journal_0 set last_sequences = '{3,4}' where first_sequences[1] = 3");
  Run("update stepwell.journal_0 set writer_nos = '{null}' where first_sequences[1] = 4");
  Run("update stepwell.journal_0 set last_sequences = '{}' where first_sequences[1] = 5");
  const Replay replay = ReplayAll();
  EXPECT_THAT(replay.whole, UnorderedElementsAre(1, 6));
  ASSERT_EQ(replay.damaged.size(), 4u);
  for (const JournalRow& row : replay.damaged) {
    EXPECT_THAT(std::string(row.damage.message()), HasSubstr("not of one length"));
  }
}

// A number beyond all that was ever committed must reach neither heads nor the ring's end.
TEST_F(JournalDamageTest, ANumberBeyondWhatIsCommittedIsCutOff) {
  const OpenedWriter writer = OpenWriter("t");
  CommitLong(writer, 1);
  Run("update stepwell.journal_0 set last_sequences = '{900}'");
  const auto rows = ReplayAll();
  EXPECT_EQ(rows.whole.size(), 1u);
  ASSERT_TRUE(ingest_
                  ->ReadUnfoldedJournal([&](const JournalRow& row) {
                    EXPECT_EQ(row.ranges.at(0).last_sequence, 1u);
                    return absl::OkStatus();
                  })
                  .ok());
  MarkAllFolded();
  ASSERT_TRUE(folds_->RecycleJournal(testing::kEpoch, INT64_MAX).ok());
  ASSERT_TRUE(folds_->RecycleJournal(testing::kEpoch, INT64_MAX).ok());
  EXPECT_EQ(JournalRows(), 0);
}

// Pages of the payload are gone, as after a crash of a disk that lied: PostgreSQL itself cannot read
// the value.
TEST_F(JournalDamageTest, AValueThatPostgresCannotRead) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 9; ++i) CommitLong(writer, i);
  const std::string toast = Text(
      "select reltoastrelid::regclass::text from pg_class "
      "where oid = 'stepwell.journal_0'::regclass");
  // TOAST tables cannot be written by hand while they are known as such, and what was deleted is
  // found until it is swept.
  Run("set allow_system_table_mods = on");
  Run(absl::StrCat("update pg_class set relkind = 'r' where oid = '", toast, "'::regclass"));
  Run(absl::StrCat("delete from ", toast, " where chunk_id in (select distinct chunk_id from ",
                   toast, " order by chunk_id offset 3 limit 2)"));
  Run(absl::StrCat("update pg_class set relkind = 't' where oid = '", toast, "'::regclass"));
  Run(absl::StrCat("vacuum ", toast));
  const Replay replay = ReplayAll();
  EXPECT_THAT(replay.whole, UnorderedElementsAre(1, 2, 3, 6, 7, 8, 9));
  ASSERT_EQ(replay.damaged.size(), 2u);
  EXPECT_EQ(replay.damaged[0].ranges.at(0).first_sequence, 4u);
  EXPECT_EQ(replay.damaged[1].ranges.at(0).first_sequence, 5u);
  EXPECT_THAT(std::string(replay.damaged[0].damage.message()), HasSubstr("XX001"));
  const absl::Status stopped =
      ingest_->ReadUnfoldedJournal([](const JournalRow&) { return absl::AbortedError("enough"); });
  EXPECT_EQ(stopped.code(), absl::StatusCode::kAborted);
}

// PostgreSQL would rather read all of so small a table than one page of it, once it knows how small it is.
TEST_F(JournalDamageTest, APageOfTwo) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 3; ++i) CommitLong(writer, i, 3000);
  Run("analyze stepwell.journal_0");
  ASSERT_NO_FATAL_FAILURE(testing::DamageTable(*sql_, "journal_0", 1));
  EXPECT_THAT(ReplayAll().whole, UnorderedElementsAre(1, 2));
}

// What is committed while a journal is read is in heads already: no range of it is given, and none is a lie.
TEST_F(JournalDamageTest, CommitsWhileItIsReadAreNoDamage) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 4; ++i) CommitLong(writer, i, 100);
  int row_count = 0;
  const absl::Status read = ingest_->ReadUnfoldedJournal([&](const JournalRow& row) {
    // Into the next segment, which is read behind this one.
    if (row_count++ == 0) {
      EXPECT_TRUE(folds_->RecycleJournal(testing::kEpoch, 0).ok());
      CommitLong(writer, 5, 100);
    }
    EXPECT_TRUE(row.damage.ok()) << row.damage;
    for (const JournalRow::Range& range : row.ranges) {
      EXPECT_LE(range.first_sequence, range.last_sequence);
      EXPECT_LE(range.last_sequence, 4u);
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read;
  EXPECT_EQ(row_count, 4);
}

// A row lies in its page, with its payload: a page that is lost costs the rows in it, and no others.
TEST_F(JournalDamageTest, APageThatPostgresCannotRead) {
  const OpenedWriter writer = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 9; ++i) CommitLong(writer, i, 3000);  // two in a page
  ASSERT_NO_FATAL_FAILURE(testing::DamageTable(*sql_, "journal_0", 1));
  const Replay replay = ReplayAll();
  EXPECT_THAT(replay.whole, UnorderedElementsAre(1, 2, 5, 6, 7, 8, 9));
  ASSERT_EQ(replay.damaged.size(), 1u);
  EXPECT_TRUE(replay.damaged[0].ranges.empty());
  EXPECT_THAT(std::string(replay.damaged[0].damage.message()), HasSubstr("journal_0 page 1"));
}

// A page of a segment of the journal is junk: commits and the ring go on beside it, whatever it held.
TEST_F(JournalDamageTest, ASegmentOfTheJournalThatCannotBeReadStandsAside) {
  const OpenedWriter writer = OpenWriter("t");
  CommitTo(writer, 1, 1);
  ASSERT_TRUE(folds_->RecycleJournal(testing::kEpoch, 0).ok());  // on to the next segment
  CommitTo(writer, 2, 2);
  MarkAllFolded();
  ASSERT_NO_FATAL_FAILURE(testing::DamageTable(*sql_, "journal_0"));
  ASSERT_TRUE(folds_->RecycleJournal(testing::kEpoch, INT64_MAX).ok());
  EXPECT_EQ(journal_->Damaged(), std::vector{0});
  // Round and round, past the damaged one.
  for (std::uint64_t sequence = 3; sequence < 30; ++sequence) {
    CommitTo(writer, sequence, sequence);
    MarkAllFolded();
    ASSERT_TRUE(folds_->RecycleJournal(testing::kEpoch, INT64_MAX).ok());
    EXPECT_NE(journal_->current(), 0);
  }
  EXPECT_GT(Number("select pg_relation_size('stepwell.journal_0')"), 0)
      << "what cannot be read is not thrown away";
  // A master that starts beside it.
  const auto ring = std::make_shared<JournalRing>();
  const auto started = PgIngestStore::Open({.url = url_}, ring);
  ASSERT_TRUE(started.ok()) << started.status();
  EXPECT_EQ(ring->Damaged(), std::vector{0});
  EXPECT_NE(ring->current(), 0);
}

TEST_F(JournalDamageTest, CommitsGoToAnotherSegmentWhereTheirOwnCannotBeWritten) {
  const OpenedWriter writer = OpenWriter("t");
  CommitTo(writer, 1, 1);
  ASSERT_NO_FATAL_FAILURE(testing::DamageTable(*sql_, "journal_0"));
  const auto refused = ingest_->Commit(Group({Advance(writer, 2)}));
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kUnavailable) << refused.status();
  EXPECT_EQ(Committed(writer), 1u);
  CommitTo(writer, 2, 2);
  EXPECT_EQ(Number("select count(*) from stepwell.journal_1"), 1);
  // Where all others are in use a segment is looked at again: it may have been mended.
  Run("truncate stepwell.journal_0");
  for (std::uint64_t sequence = 3; sequence < 12; ++sequence) {
    CommitTo(writer, sequence, sequence);
    ASSERT_TRUE(folds_->RecycleJournal(testing::kEpoch, 0).ok());
  }
  EXPECT_TRUE(journal_->Damaged().empty());
  EXPECT_EQ(journal_->current(), 0);
}

TEST_F(JournalDamageTest, CommitsGoToAnotherSegmentWhereTheirProgressCannotBeWritten) {
  const OpenedWriter writer = OpenWriter("t");
  CommitTo(writer, 1, 1);
  MarkAllFolded();
  Run("update stepwell.writers set committed_sequence = 1");  // as carried
  ASSERT_NO_FATAL_FAILURE(testing::DamageTable(*sql_, "progress_0"));
  EXPECT_EQ(ingest_->Commit(Group({Advance(writer, 2)})).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(journal_->Damaged(), std::vector{0});
}

}  // namespace
}  // namespace stepwell
