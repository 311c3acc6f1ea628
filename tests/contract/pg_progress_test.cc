// Where writers stand, in stepwell.writers and in the segments of progress beside the journal's: a repeat is a
// repeat and a hole a hole wherever the newest commit of a writer is told (pg_progress.h has the invariant).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/pg_progress.h"
#include "tests/contract/pg_store_test.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::kEpoch;
using testing::PgStoreTest;

class PgProgressTest : public PgStoreTest {
 protected:
  // As a writer opens again: the same one, with the next generation.
  OpenedWriter OpenAs(const Uuid& writer, const std::string& trial = "t",
                      std::int64_t owner_epoch = kEpoch) {
    OpenWriterRequest request;
    request.trials = kAllProjects;
    request.trial.external_id = trial;
    request.writer = writer;
    request.attempt_key = "job";
    request.owner_epoch = owner_epoch;
    auto opened = ingest_->OpenWriter(request);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *opened : OpenedWriter{};
  }
  static WriterAdvance WithCrc(WriterAdvance advance) {
    advance.last_crc32c = static_cast<std::uint32_t>(4'000'000'000 + advance.last_sequence);
    return advance;
  }
  static std::uint32_t CrcOf(std::uint64_t sequence) {
    return static_cast<std::uint32_t>(4'000'000'000 + sequence);
  }
  AdvanceResult CommitOne(IngestStore& store, const WriterAdvance& advance,
                          std::int64_t owner_epoch = kEpoch) {
    CommitGroupRequest group = Group({advance});
    group.owner_epoch = owner_epoch;
    const auto results = store.Commit(group);
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->at(0) : AdvanceResult{};
  }
  void CommitCrcs(const OpenedWriter& writer, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t i = first; i <= last; ++i) {
      ASSERT_EQ(CommitOne(*ingest_, WithCrc(Advance(writer, i))).outcome,
                AdvanceOutcome::kCommitted);
    }
  }
  void Fold(const OpenedWriter& writer, std::uint64_t from, std::uint64_t to) {
    WriterFold fold;
    fold.trial_id = writer.trial_id;
    fold.writer_no = writer.writer_no;
    fold.from_sequence_exclusive = from;
    fold.to_sequence = to;
    const auto folded = folds_->Fold(kEpoch, {fold});
    ASSERT_TRUE(folded.ok()) << folded.status();
  }
  // Commits were received long ago: the ring goes on each time.
  void NextSegment() { ASSERT_TRUE(folds_->RecycleJournal(kEpoch, 0).ok()); }
  void Recycle() { ASSERT_TRUE(folds_->RecycleJournal(kEpoch, INT64_MAX).ok()); }
  std::int64_t ProgressRows() { return Number("select count(*) from stepwell.progress"); }
  std::string WriterRow() {
    return Text(
        "select concat_ws(' ', committed_sequence, folded_sequence, last_crc32c, state) "
        "from stepwell.writers");
  }
  // All that exactly-once asks: repeats, holes and the next one, whoever is asked.
  void ExpectStandsAt(const Uuid& uuid, std::uint64_t sequence) {
    SCOPED_TRACE(absl::StrCat("at ", sequence));
    const OpenedWriter writer = OpenAs(uuid);
    EXPECT_EQ(writer.committed_sequence, sequence);
    EXPECT_EQ(writer.last_crc32c, sequence == 0 ? 0 : CrcOf(sequence));
    EXPECT_EQ(Committed(writer), sequence);
    const std::int64_t rows = JournalRows();
    const AdvanceResult hole = CommitOne(*ingest_, Advance(writer, sequence + 2));
    EXPECT_EQ(hole.outcome, AdvanceOutcome::kMismatch);
    EXPECT_EQ(hole.committed_sequence, sequence);
    if (sequence > 0) {
      const AdvanceResult repeat = CommitOne(*ingest_, Advance(writer, sequence));
      EXPECT_EQ(repeat.outcome, AdvanceOutcome::kRepeat);
      EXPECT_EQ(repeat.committed_sequence, sequence);
    }
    EXPECT_EQ(JournalRows(), rows);
  }
  const Uuid uuid_ = Uuid::Random();
};

TEST_F(PgProgressTest, ACommitRewritesNoRowOfWriters) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 1);
  const std::string before = Text("select ctid::text || xmin::text from stepwell.writers");
  CommitCrcs(writer, 2, 20);
  EXPECT_EQ(Text("select ctid::text || xmin::text from stepwell.writers"), before);
  EXPECT_EQ(ProgressRows(), 20);
  EXPECT_EQ(Committed(writer), 20U);
}

TEST_F(PgProgressTest, StandsWhereItStoodAfterARestart) {
  CommitCrcs(OpenAs(uuid_), 1, 3);
  Reopen();
  ExpectStandsAt(uuid_, 3);
  Reopen();
  CommitCrcs(OpenAs(uuid_), 4, 4);
  ExpectStandsAt(uuid_, 4);
}

TEST_F(PgProgressTest, StandsWhereItStoodAfterFoldsAndTruncations) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 2);
  NextSegment();
  CommitCrcs(writer, 3, 3);
  Fold(writer, 0, 2);
  EXPECT_EQ(WriterRow(), absl::StrCat("3 2 ", CrcOf(3), " 1")) << "a fold takes progress along";
  Recycle();
  EXPECT_EQ(ProgressRows(), 1);
  ExpectStandsAt(uuid_, 3);
  NextSegment();
  Fold(writer, 2, 3);
  Recycle();
  EXPECT_EQ(ProgressRows(), 0);
  EXPECT_EQ(JournalRows(), 0);
  ExpectStandsAt(uuid_, 3);
  Reopen();
  ExpectStandsAt(uuid_, 3);
}

// The one that is silent has its only commit in a segment that goes round and round.
TEST_F(PgProgressTest, AWriterThatWasSilentForLongStandsWhereItStood) {
  const OpenedWriter silent = OpenAs(uuid_);
  CommitCrcs(silent, 1, 5);
  const OpenedWriter loud = OpenWriter("t");
  for (std::uint64_t i = 1; i <= 30; ++i) {
    ASSERT_EQ(CommitOne(*ingest_, Advance(loud, i)).outcome, AdvanceOutcome::kCommitted);
    NextSegment();
    MarkAllFolded();
    Recycle();
  }
  EXPECT_EQ(ProgressRows(), 0);
  EXPECT_EQ(CommitOne(*ingest_, Advance(silent, 5)).outcome, AdvanceOutcome::kRepeat);
  EXPECT_EQ(CommitOne(*ingest_, WithCrc(Advance(silent, 6))).outcome, AdvanceOutcome::kCommitted);
  ExpectStandsAt(uuid_, 6);
  EXPECT_EQ(Committed(loud), 30U);
}

// A truncation trusts no fold: what no row of writers knows yet is carried first.
TEST_F(PgProgressTest, NothingIsTruncatedBeforeItIsCarried) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 4);
  NextSegment();
  Run("update stepwell.writers set folded_sequence = 4");
  EXPECT_EQ(WriterRow(), "0 4 0 1");
  Recycle();
  EXPECT_EQ(ProgressRows(), 0);
  EXPECT_EQ(WriterRow(), absl::StrCat("4 4 ", CrcOf(4), " 1"));
  ExpectStandsAt(uuid_, 4);
}

// A master of before, or a backend that is late: its row came after we had looked.
TEST_F(PgProgressTest, WhatCameWhileASegmentWasCarriedIsNotTruncated) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 2);
  NextSegment();
  MarkAllFolded();
  const auto late = Connect(url_);
  ASSERT_TRUE(late->Begin().ok());
  ASSERT_TRUE(late->Exec("select from stepwell.writers for no key update").ok());
  ASSERT_TRUE(late->Exec("insert into stepwell.progress_0 select trial_id, 3, 0, writer_no "
                         "from stepwell.writers")
                  .ok());
  Recycle();  // gives up after 20 ms
  EXPECT_EQ(ProgressRows(), 2);
  ASSERT_TRUE(late->Commit().ok());
  Recycle();
  EXPECT_EQ(JournalRows(), 0);
  EXPECT_EQ(Committed(writer), 3U);
}

// The same, just behind the carrying: it is carried the next time, before the segment goes.
TEST_F(PgProgressTest, WhatCameBehindTheCarryingIsNotTruncated) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 2);
  NextSegment();
  MarkAllFolded();
  Run("create function stepwell.late() returns trigger language plpgsql as $$ begin "
      "insert into stepwell.progress_0 values (new.trial_id, 3, 0, new.writer_no); return new; end "
      "$$");
  Run("create trigger late after update of committed_sequence on stepwell.writers for each row "
      "when (new.committed_sequence = 2) execute function stepwell.late()");
  Recycle();
  EXPECT_EQ(ProgressRows(), 3);
  EXPECT_EQ(JournalRows(), 2);
  Recycle();
  EXPECT_EQ(JournalRows(), 0);
  EXPECT_EQ(Committed(writer), 3U);
}

TEST_F(PgProgressTest, AKillBetweenCarryingAndTruncationLeavesBoth) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 3);
  ASSERT_TRUE(CarryProgress(*sql_, 0).ok());
  EXPECT_EQ(WriterRow(), absl::StrCat("3 0 ", CrcOf(3), " 1"));
  EXPECT_EQ(ProgressRows(), 3);
  ASSERT_TRUE(CarryProgress(*sql_, 0).ok());
  Reopen();
  ExpectStandsAt(uuid_, 3);
  CommitCrcs(OpenAs(uuid_), 4, 4);
  ExpectStandsAt(uuid_, 4);
}

// A ring that cannot go on: somebody has read the segments and does not end.
TEST_F(PgProgressTest, AFullRingGoesOnInItsSegment) {
  const OpenedWriter writer = OpenAs(uuid_);
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->Begin().ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.writer_progress").ok());
  std::uint64_t sequence = 0;
  for (int i = 0; i < 3 * JournalRing::kSegmentCount; ++i) {
    ++sequence;
    CommitCrcs(writer, sequence, sequence);
    MarkAllFolded();
    Recycle();
  }
  EXPECT_EQ(ProgressRows(), static_cast<std::int64_t>(sequence));
  ExpectStandsAt(uuid_, sequence);
  ASSERT_TRUE(reader->Commit().ok());
  Recycle();
  EXPECT_LE(ProgressRows(), static_cast<std::int64_t>(sequence) - JournalRing::kSegmentCount + 1);
  ExpectStandsAt(uuid_, sequence);
}

TEST_F(PgProgressTest, WhoClosesHasAllOfHisProgressInHisRow) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 3);
  WriterAdvance close = Advance(writer, 4, 3);
  close.payload.clear();
  close.closing = WriterState::kClosed;
  EXPECT_EQ(CommitOne(*ingest_, close).outcome, AdvanceOutcome::kCommitted);
  EXPECT_EQ(WriterRow(), absl::StrCat("3 0 ", CrcOf(3), " 2"));
  const OpenedWriter again = OpenAs(uuid_);
  WriterAdvance last = WithCrc(Advance(again, 4));
  CommitCrcs(again, 4, 4);
  last.closing = WriterState::kDied;
  EXPECT_EQ(CommitOne(*ingest_, last).outcome, AdvanceOutcome::kRepeat);
  EXPECT_EQ(WriterRow(), absl::StrCat("4 0 ", CrcOf(4), " 3")) << "a repeat that closes";
  const OpenedWriter third = OpenAs(uuid_);
  WriterAdvance both = WithCrc(Advance(third, 5, 7));
  both.closing = WriterState::kClosed;
  EXPECT_EQ(CommitOne(*ingest_, both).outcome, AdvanceOutcome::kCommitted);
  EXPECT_EQ(WriterRow(), absl::StrCat("7 0 ", CrcOf(7), " 2"));
  EXPECT_EQ(CommitOne(*ingest_, both).outcome, AdvanceOutcome::kRepeat);
  ExpectStandsAt(uuid_, 7);
}

// Two processes that hold one epoch, against all rules: neither believes its book.
TEST_F(PgProgressTest, AnotherWhoCommitsMakesTheBookWorthless) {
  const auto second = PgIngestStore::Open({.url = url_}, journal_);
  ASSERT_TRUE(second.ok()) << second.status();
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 2);
  EXPECT_EQ(CommitOne(**second, WithCrc(Advance(writer, 3, 5))).outcome,
            AdvanceOutcome::kCommitted);
  const AdvanceResult repeat = CommitOne(*ingest_, Advance(writer, 3));
  EXPECT_EQ(repeat.outcome, AdvanceOutcome::kRepeat);
  EXPECT_EQ(repeat.committed_sequence, 5U);
  EXPECT_EQ(CommitOne(*ingest_, WithCrc(Advance(writer, 6))).outcome, AdvanceOutcome::kCommitted);
  EXPECT_EQ(CommitOne(**second, Advance(writer, 6)).outcome, AdvanceOutcome::kRepeat);
  ExpectStandsAt(uuid_, 6);
}

TEST_F(PgProgressTest, ATakeOverFindsWhatTheFormerOwnerCommitted) {
  ASSERT_EQ(ingest_->AcquireOwnership({.master_id = "a", .address = "a:1"})->epoch, kEpoch);
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 6);
  Run("update stepwell.masters set renewed_time = to_timestamp(0)");
  const auto next = PgIngestStore::Open({.url = url_}, std::make_shared<JournalRing>());
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_EQ((*next)->AcquireOwnership({.master_id = "b", .address = "b:1"})->epoch, 2);
  ASSERT_TRUE((*next)->FenceTrials(2).ok());
  const auto writers = (*next)->ReadWriters();
  ASSERT_TRUE(writers.ok()) << writers.status();
  ASSERT_EQ(writers->size(), 1U);
  EXPECT_EQ(writers->at(0).committed_sequence, 6U);
  std::uint64_t replayed = 0;
  ASSERT_TRUE((*next)
                  ->ReadUnfoldedJournal([&](const JournalRow& row) {
                    replayed = std::max(replayed, row.ranges.at(0).last_sequence);
                    return absl::OkStatus();
                  })
                  .ok());
  EXPECT_EQ(replayed, 6U);
  EXPECT_EQ(CommitOne(**next, Advance(writer, 6), 2).outcome, AdvanceOutcome::kRepeat);
  EXPECT_EQ(CommitOne(**next, WithCrc(Advance(writer, 7)), 2).outcome, AdvanceOutcome::kCommitted);
  const auto former = ingest_->Commit(Group({Advance(writer, 8)}));
  EXPECT_EQ(former.status().code(), absl::StatusCode::kAborted) << former.status();
}

// A master of before migration 9 reads stepwell.writers alone.
TEST_F(PgProgressTest, AMasterOfAnOlderReleaseTakesNothingOver) {
  ASSERT_EQ(ingest_->AcquireOwnership({.master_id = "a", .address = "a:1"})->epoch, kEpoch);
  Run("update stepwell.masters set renewed_time = to_timestamp(0)");
  const auto older = sql_->Exec(R"(
insert into stepwell.masters as m (slot, master_id, epoch, address, renewed_time)
values (0, 'old', 1, 'old:1', clock_timestamp())
on conflict (slot) do update
  set master_id = excluded.master_id, address = excluded.address,
      epoch = m.epoch + 1, renewed_time = clock_timestamp()
returning epoch)");
  EXPECT_FALSE(older.ok());
  EXPECT_EQ(ingest_->AcquireOwnership({.master_id = "b", .address = "b:1"})->epoch, 2);
}

// TRUNCATE empties a table under older snapshots, too: a statement that began before it must not see the
// segments without what they told, and writers without what was carried.
TEST_F(PgProgressTest, NobodySeesAWriterGoBackBesideTruncations) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 1);
  std::atomic<std::uint64_t> acked = 1;
  std::atomic<bool> stop = false;
  std::atomic<int> looks = 0;
  const auto look = [&](const std::function<absl::StatusOr<std::uint64_t>()>& read) {
    while (!stop) {
      const std::uint64_t at_least = acked;
      const absl::StatusOr<std::uint64_t> answer = read();
      if (!answer.ok()) {
        ADD_FAILURE() << answer.status();
        return;
      }
      const std::uint64_t seen = *answer;
      ++looks;
      if (seen < at_least) {
        ADD_FAILURE() << "acked " << at_least << ", seen " << seen;
        return;
      }
    }
  };
  std::thread settled([&] {
    look([&]() -> absl::StatusOr<std::uint64_t> {
      const auto progress = ingest_->ReadProgress(writer.trial_id, {writer.writer_no});
      if (!progress.ok()) return progress.status();
      return progress->at(0).committed_sequence;
    });
  });
  std::thread unlocked([&] {
    const auto sql = Connect(url_);
    look([&]() -> absl::StatusOr<std::uint64_t> {
      const auto row = sql->Exec("select committed_sequence from stepwell.writer_progress");
      if (!row.ok()) return row.status();
      return static_cast<std::uint64_t>(row->Int64(0, 0));
    });
  });
  std::uint64_t folded = 0;
  int truncated = 0;
  for (const absl::Time end = absl::Now() + absl::Minutes(1);
       truncated < 10 && absl::Now() < end;) {
    const std::uint64_t next = acked + 1;
    if (CommitOne(*ingest_, WithCrc(Advance(writer, next))).outcome != AdvanceOutcome::kCommitted) {
      ADD_FAILURE() << "sequence " << next;
      break;
    }
    acked = next;
    NextSegment();
    Fold(writer, folded, next);
    folded = next;
    Recycle();
    // The readers keep it from some.
    if (JournalRows() == 0) ++truncated;
  }
  stop = true;
  settled.join();
  unlocked.join();
  EXPECT_GT(looks, 10);
  EXPECT_EQ(truncated, 10);
  ExpectStandsAt(uuid_, acked);
}

// A question's snapshot is older than a truncation: writers alone are never behind what is folded.
TEST_F(PgProgressTest, ASnapshotNeverSeesMoreFoldedThanCommitted) {
  const OpenedWriter writer = OpenAs(uuid_);
  CommitCrcs(writer, 1, 2);
  const auto reader = Connect(url_);
  ASSERT_TRUE(reader->ExecScript("begin isolation level repeatable read").ok());
  ASSERT_TRUE(reader->Exec("select count(*) from stepwell.trials").ok());
  NextSegment();
  Fold(writer, 0, 2);
  Recycle();
  const auto seen =
      reader->Exec("select committed_sequence, folded_sequence from stepwell.writers");
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->Int64(0, 0), 0);
  EXPECT_EQ(seen->Int64(0, 1), 0);
  ASSERT_TRUE(reader->Commit().ok());
  EXPECT_EQ(Number("select count(*) from stepwell.writers "
                   "where committed_sequence < folded_sequence"),
            0);
}

// Whatever happens in whatever order, against a model: commits with repeats and holes, folds, truncations,
// restarts, a second process, opens, closes, a reader that holds segments.
TEST_F(PgProgressTest, AgreesWithAModelInAnyOrder) {
  const std::uint64_t seed = testing::TestSeed();
  SCOPED_TRACE(absl::StrCat("STEPWELL_TEST_SEED=", seed));
  std::mt19937_64 random(seed);
  const auto below = [&](int n) {
    return static_cast<int>(random() % static_cast<std::uint64_t>(n));
  };
  struct Model {
    Uuid uuid;
    OpenedWriter writer;
    std::uint64_t committed = 0;
    std::uint64_t folded = 0;
  };
  std::vector<Model> models;
  for (int i = 0; i < 4; ++i) {
    Model& model = models.emplace_back();
    model.uuid = Uuid::Random();
    model.writer = OpenAs(model.uuid, absl::StrCat("t", i % 2));
  }
  const auto second = PgIngestStore::Open({.url = url_}, journal_);
  ASSERT_TRUE(second.ok()) << second.status();
  std::unique_ptr<PgConnection> reader;
  for (int step = 0; step < 300; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    const int what = below(20);
    Model& model = models[static_cast<std::size_t>(below(4))];
    if (what < 12) {
      IngestStore& store = below(8) == 0 ? **second : static_cast<IngestStore&>(*ingest_);
      std::vector<WriterAdvance> advances;
      for (Model& each : models) {
        if (below(2) == 0) continue;
        const std::uint64_t first =
            each.committed + 1 + static_cast<std::uint64_t>(below(6) == 0 ? below(3) : 0) -
            std::min<std::uint64_t>(each.committed, static_cast<std::uint64_t>(below(4) / 3));
        advances.push_back(
            WithCrc(Advance(each.writer, first, first + static_cast<std::uint64_t>(below(3)))));
      }
      const auto results = store.Commit(Group(advances));
      ASSERT_TRUE(results.ok()) << results.status();
      for (std::size_t i = 0; i < advances.size(); ++i) {
        const WriterAdvance& advance = advances[i];
        Model& of = *std::find_if(models.begin(), models.end(), [&](const Model& m) {
          return m.writer.trial_id == advance.trial_id && m.writer.writer_no == advance.writer_no;
        });
        AdvanceOutcome expected = AdvanceOutcome::kMismatch;
        if (advance.first_sequence == of.committed + 1) {
          expected = AdvanceOutcome::kCommitted;
          of.committed = advance.last_sequence;
        } else if (advance.last_sequence <= of.committed) {
          expected = AdvanceOutcome::kRepeat;
        }
        ASSERT_EQ(results->at(i).outcome, expected);
        ASSERT_EQ(results->at(i).committed_sequence, of.committed);
      }
    } else if (what < 14) {
      NextSegment();
    } else if (what < 16) {
      for (Model& each : models) {
        const auto to = each.folded + (each.committed - each.folded + 1) / 2;
        Fold(each.writer, each.folded, to);
        each.folded = to;
      }
      Recycle();
    } else if (what == 16) {
      Reopen();
    } else if (what == 17) {
      model.writer = OpenAs(model.uuid, absl::StrCat("t", (&model - models.data()) % 2));
      ASSERT_EQ(model.writer.committed_sequence, model.committed);
      ASSERT_EQ(model.writer.last_crc32c, model.committed == 0 ? 0 : CrcOf(model.committed));
    } else if (what == 18) {
      WriterAdvance close = Advance(model.writer, model.committed + 1, model.committed);
      close.payload.clear();
      close.closing = WriterState::kClosed;
      ASSERT_EQ(CommitOne(*ingest_, close).outcome, AdvanceOutcome::kCommitted);
      model.writer = OpenAs(model.uuid, absl::StrCat("t", (&model - models.data()) % 2));
      ASSERT_EQ(model.writer.committed_sequence, model.committed);
      ASSERT_EQ(model.writer.last_crc32c, model.committed == 0 ? 0 : CrcOf(model.committed));
    } else if (reader == nullptr) {
      reader = Connect(url_);
      ASSERT_TRUE(reader->Begin().ok());
      const std::string held = absl::StrCat("select count(*) from stepwell.progress_", below(8));
      ASSERT_TRUE(reader->Exec(SqlOf(held)).ok());
    } else {
      reader.reset();
    }
  }
  for (Model& each : models) EXPECT_EQ(Committed(each.writer), each.committed);
}

}  // namespace
}  // namespace stepwell
