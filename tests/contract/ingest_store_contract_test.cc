// What every IngestStore keeps of commits: sequences, generations, owners, the journal.
#include "storage/ingest_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/contract/ingest_store_contract.h"
#include "tests/support/codec_vectors.h"

namespace stepwell {
namespace {

using testing::TestSeed;

TEST_P(IngestStoreContract, AdvancesByOneChunkAndBySeveral) {
  const OpenedWriter writer = Open(Request("t"));
  EXPECT_EQ(writer.committed_sequence, 0u);
  EXPECT_EQ(writer.generation, 1u);
  ExpectOutcome(Advance(writer, 1, 1), AdvanceOutcome::kCommitted, 1);
  ExpectOutcome(Advance(writer, 2, 9), AdvanceOutcome::kCommitted, 9);
  const OpenedWriter again = Open(Request("t", Uuid()));
  EXPECT_EQ(again.writer_no, WriterNo{2});
}

TEST_P(IngestStoreContract, AnswersRepeatsHolesAndOverlapsWithWhatItHolds) {
  const OpenedWriter writer = Open(Request("t"));
  ExpectOutcome(Advance(writer, 1, 5), AdvanceOutcome::kCommitted, 5);
  struct Row {
    std::string name;
    std::uint64_t first, last;
    AdvanceOutcome outcome;
  };
  for (const Row& row : std::vector<Row>{{"all of it", 1, 5, AdvanceOutcome::kRepeat},
                                         {"its end", 4, 5, AdvanceOutcome::kRepeat},
                                         {"its start", 1, 2, AdvanceOutcome::kRepeat},
                                         {"a hole", 7, 8, AdvanceOutcome::kMismatch},
                                         {"partly known", 4, 7, AdvanceOutcome::kMismatch}}) {
    SCOPED_TRACE(row.name);
    ExpectOutcome(Advance(writer, row.first, row.last), row.outcome, 5);
  }
  const std::vector<JournalRow> journal = Journal();
  ASSERT_EQ(journal.size(), 1u);
  EXPECT_EQ(journal[0].payloads, std::vector<std::string>{"payload 1-5"});
}

TEST_P(IngestStoreContract, FencesTheOlderGeneration) {
  const OpenWriterRequest request = Request("t");
  const OpenedWriter older = Open(request);
  ExpectOutcome(Advance(older, 1, 1), AdvanceOutcome::kCommitted, 1);
  const OpenedWriter newer = Open(request);
  EXPECT_EQ(newer.writer_no, older.writer_no);
  EXPECT_GT(newer.generation, older.generation);
  EXPECT_EQ(newer.committed_sequence, 1u);
  EXPECT_EQ(newer.last_crc32c, 7u);
  ExpectOutcome(Advance(older, 2, 2), AdvanceOutcome::kFenced, 1);
  ExpectOutcome(Advance(newer, 2, 2), AdvanceOutcome::kCommitted, 2);
  ExpectOutcome(Advance(older, 1, 1), AdvanceOutcome::kFenced, 2);
}

TEST_P(IngestStoreContract, GivesAGenerationAboveTheClients) {
  OpenWriterRequest request = Request("t");
  request.last_generation = 41;  // after a restore the database knows less than the client
  EXPECT_EQ(Open(request).generation, 42u);
  request.last_generation = 7;
  EXPECT_EQ(Open(request).generation, 43u);
}

TEST_P(IngestStoreContract, FencesUnknownWriters) {
  OpenedWriter writer = Open(Request("t"));
  writer.writer_no = WriterNo{77};
  EXPECT_EQ(CommitOne(Advance(writer, 1, 1)).outcome, AdvanceOutcome::kFenced);
  writer.trial_id = TrialId{123456};
  EXPECT_EQ(CommitOne(Advance(writer, 1, 1)).outcome, AdvanceOutcome::kFenced);
}

TEST_P(IngestStoreContract, StoresTheGoodPartOfAGroupOnly) {
  const OpenedWriter a = Open(Request("a"));
  const OpenedWriter b = Open(Request("b"));
  const OpenedWriter c = Open(Request("a"));
  ExpectOutcome(Advance(c, 1, 3), AdvanceOutcome::kCommitted, 3);
  const auto results = Commit({Advance(b, 1, 2), Advance(c, 9, 9), Advance(a, 1, 1)});
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at(0).outcome, AdvanceOutcome::kCommitted);
  EXPECT_EQ(results->at(0).committed_sequence, 2u);
  EXPECT_EQ(results->at(1).outcome, AdvanceOutcome::kMismatch);
  EXPECT_EQ(results->at(1).committed_sequence, 3u);
  EXPECT_EQ(results->at(2).outcome, AdvanceOutcome::kCommitted);
  std::vector<std::string> payloads;
  for (const JournalRow& row : Journal()) {
    payloads.insert(payloads.end(), row.payloads.begin(), row.payloads.end());
  }
  EXPECT_EQ(payloads.size(), 3u);
  EXPECT_EQ(std::count(payloads.begin(), payloads.end(), "payload 9-9"), 0);
}

TEST_P(IngestStoreContract, RefusesAGroupThatIsOurMistake) {
  const OpenedWriter writer = Open(Request("t"));
  WriterAdvance nul = Advance(writer, 1, 1);
  nul.gaps.push_back(GapOf(GapCause::kRejected, 1, 1));
  nul.gaps[0].reason = std::string("a\0b", 3);
  struct Row {
    std::string name;
    std::vector<WriterAdvance> advances;
  };
  for (const Row& row : std::vector<Row>{
           {"two entries of one writer", {Advance(writer, 1, 1), Advance(writer, 2, 2)}},
           {"sequence 0", {Advance(writer, 0, 1)}},
           {"empty without close", {Advance(writer, 2, 1)}},
           {"beyond 63 bits", {Advance(writer, 1, ~std::uint64_t{0})}},
           {"NUL in a reason", {nul}}}) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(Commit(row.advances).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_TRUE(Journal().empty());
  ExpectOutcome(Advance(writer, 1, 1), AdvanceOutcome::kCommitted, 1);
}

TEST_P(IngestStoreContract, StopsAnOwnerThatWasFencedBetween) {
  ASSERT_EQ(store().AcquireOwnership({.master_id = "first", .address = "a:1"})->epoch, 1);
  const OpenedWriter writer = Open(Request("t"));
  ExpectOutcome(Advance(writer, 1, 1), AdvanceOutcome::kCommitted, 1);
  const auto taken = TakeFromSilent("second");
  ASSERT_TRUE(taken.ok() && taken->is_owner) << taken.status();
  ASSERT_TRUE(store().FenceTrials(taken->epoch).ok());
  EXPECT_EQ(Commit({Advance(writer, 2, 2)}).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store().OpenWriter(Request("t")).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store().OpenWriter(Request("new")).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(store().SetTrialState(writer.trial_id, TrialState::kLost, 1).code(),
            absl::StatusCode::kAborted);
  const auto results = Commit({Advance(writer, 2, 2)}, taken->epoch);
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->at(0).outcome, AdvanceOutcome::kCommitted);
}

TEST_P(IngestStoreContract, RaisesTheEpochOfATrialAtRestWhenItIsOpened) {
  ASSERT_EQ(store().AcquireOwnership({.master_id = "m", .address = "a:1"})->epoch, 1);
  const OpenWriterRequest request = Request("t");
  const OpenedWriter writer = Open(request);
  WriterAdvance last = Advance(writer, 1, 1);
  last.closing = WriterState::kClosed;
  ExpectOutcome(last, AdvanceOutcome::kCommitted, 1);
  under_test_->SetFolded(writer.trial_id, writer.writer_no, 1);
  ASSERT_TRUE(store().SetTrialState(writer.trial_id, TrialState::kCompleted, kEpoch).ok());
  ASSERT_EQ(store().AcquireOwnership({.master_id = "m", .address = "a:1"})->epoch, 2);
  ASSERT_TRUE(store().FenceTrials(2).ok());
  EXPECT_TRUE(Commit({Advance(writer, 2, 2)}).ok());  // not fenced, since nothing was open
  OpenWriterRequest again = request;
  again.owner_epoch = 2;
  const OpenedWriter reopened = Open(again);
  EXPECT_EQ(Commit({Advance(reopened, 2, 2)}).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Commit({Advance(reopened, 2, 2)}, 2).ok());
}

TEST_P(IngestStoreContract, LetsOneMasterOwn) {
  const auto first = store().AcquireOwnership({.master_id = "first", .address = "a:1"});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->is_owner);
  const auto standby = store().AcquireOwnership({.master_id = "second", .address = "b:2"});
  ASSERT_TRUE(standby.ok()) << standby.status();
  EXPECT_FALSE(standby->is_owner);
  EXPECT_EQ(standby->owner_id, "first");
  EXPECT_LT(standby->renewed_age_seconds, 10);
  EXPECT_TRUE(store().AcquireOwnership({"first", "a:1", first->epoch, first->epoch})->is_owner);
  EXPECT_FALSE(
      store().AcquireOwnership({"first", "a:1", first->epoch + 1, first->epoch + 1})->is_owner);
  const auto restarted = store().AcquireOwnership({.master_id = "first", .address = "a:1"});
  EXPECT_TRUE(restarted->is_owner);
  EXPECT_GT(restarted->epoch, first->epoch);
  EXPECT_FALSE(store().AcquireOwnership({"first", "a:1", first->epoch, first->epoch})->is_owner);
  const auto taken = TakeFromSilent("second");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->is_owner);
  EXPECT_GT(taken->epoch, restarted->epoch);
  // The former owner does not get it back by renewing.
  EXPECT_FALSE(
      store().AcquireOwnership({"first", "a:1", restarted->epoch, restarted->epoch})->is_owner);
}

TEST_P(IngestStoreContract, AnOwnerThatRenewsIsNotTakenForTheOneThatWasSilent) {
  const auto owner = store().AcquireOwnership({.master_id = "first", .address = "a:1"});
  ASSERT_TRUE(owner.ok()) << owner.status();
  const auto seen = store().AcquireOwnership({.master_id = "second", .address = "b:2"});
  ASSERT_TRUE(seen.ok()) << seen.status();
  ASSERT_TRUE(store().AcquireOwnership({"first", "a:1", owner->epoch, owner->epoch})->is_owner);
  const auto late = store().AcquireOwnership(
      {.master_id = "second", .address = "b:2", .lapsed_renewal_us = seen->renewal_us});
  ASSERT_TRUE(late.ok()) << late.status();
  EXPECT_FALSE(late->is_owner);
  EXPECT_NE(late->renewal_us, seen->renewal_us);
}

// Its caches go by the epoch: one that it held once is never another.
TEST_P(IngestStoreContract, GivesAnEpochAboveTheClaims) {
  const auto owner =
      store().AcquireOwnership({.master_id = "m", .address = "a:1", .epoch = 0, .last_epoch = 7});
  ASSERT_TRUE(owner.ok()) << owner.status();
  EXPECT_TRUE(owner->is_owner);
  EXPECT_EQ(owner->epoch, 8);
}

// Two masters with one id, each renewing in turn, as two containers of one image would.
TEST_P(IngestStoreContract, TwoMastersOfOneIdDoNotTakeOverFromEachOtherForEver) {
  struct Master {
    std::int64_t epoch = 0;
    std::int64_t last_epoch = 0;
    std::int64_t seen_us = 0;
    std::int64_t lapsed_us = 0;
    int take_overs = 0;
  };
  const auto renew = [&](Master& master) {
    const auto owner = store().AcquireOwnership({.master_id = "m",
                                                 .address = "a:1",
                                                 .epoch = master.epoch,
                                                 .last_epoch = master.last_epoch,
                                                 .lapsed_renewal_us = master.lapsed_us});
    ASSERT_TRUE(owner.ok()) << owner.status();
    if (owner->is_owner && owner->epoch != master.epoch) ++master.take_overs;
    master.seen_us = owner->renewal_us;
    master.epoch = owner->is_owner ? owner->epoch : 0;
    if (owner->is_owner) master.last_epoch = owner->epoch;
  };
  Master a, b;
  for (int round = 0; round < 5; ++round) {
    renew(a);
    renew(b);
  }
  EXPECT_EQ(a.take_overs, 1);
  EXPECT_EQ(b.take_overs, 1) << "it may have been started anew";
  EXPECT_EQ(a.epoch, 0);
  EXPECT_NE(b.epoch, 0);
  // The newer one is gone: the other waits until its renewal has lapsed.
  renew(a);
  EXPECT_EQ(a.epoch, 0);
  a.lapsed_us = a.seen_us;
  renew(a);
  EXPECT_NE(a.epoch, 0);
  renew(b);
  EXPECT_EQ(b.epoch, 0);
  // Whose own take-over failed takes it again at once, since nobody came between.
  a.epoch = 0;
  renew(a);
  EXPECT_NE(a.epoch, 0);
}

TEST_P(IngestStoreContract, AFormerOwnerSetsNoStateOfATrialAtRest) {
  ASSERT_EQ(store().AcquireOwnership({.master_id = "first", .address = "a:1"})->epoch, 1);
  const OpenedWriter writer = Open(Request("t"));
  WriterAdvance last = Advance(writer, 1, 1);
  last.closing = WriterState::kClosed;
  ExpectOutcome(last, AdvanceOutcome::kCommitted, 1);
  under_test_->SetFolded(writer.trial_id, writer.writer_no, 1);
  ASSERT_TRUE(store().SetTrialState(writer.trial_id, TrialState::kCompleted, 1).ok());
  ASSERT_EQ(TakeFromSilent("second")->epoch, 2);
  ASSERT_TRUE(store().FenceTrials(2).ok());  // not this one: nothing of it is open
  EXPECT_EQ(store().SetTrialState(writer.trial_id, TrialState::kLost, 1).code(),
            absl::StatusCode::kAborted);
  EXPECT_TRUE(store().SetTrialState(writer.trial_id, TrialState::kFailed, 2).ok());
}

TEST_P(IngestStoreContract, AnOwnerThatReleasesIsFollowedAtOnce) {
  const auto first = store().AcquireOwnership({.master_id = "first", .address = "a:1"});
  ASSERT_TRUE(first.ok()) << first.status();
  // Neither by another one, nor under another epoch.
  ASSERT_TRUE(store().ReleaseOwnership("second", first->epoch).ok());
  ASSERT_TRUE(store().ReleaseOwnership("first", first->epoch + 1).ok());
  EXPECT_FALSE(store().AcquireOwnership({.master_id = "second", .address = "b:2"})->is_owner);
  ASSERT_TRUE(store().ReleaseOwnership("first", first->epoch).ok());
  const auto taken = store().AcquireOwnership({.master_id = "second", .address = "b:2"});
  EXPECT_TRUE(taken->is_owner);
  EXPECT_EQ(taken->epoch, first->epoch + 1);
  ASSERT_TRUE(store().ReleaseOwnership("first", first->epoch).ok());
  EXPECT_FALSE(store().AcquireOwnership({.master_id = "first", .address = "a:1"})->is_owner)
      << "it is not its any more";
}

TEST_P(IngestStoreContract, ClosesAndReopens) {
  const OpenWriterRequest request = Request("t");
  const OpenedWriter writer = Open(request);
  ExpectOutcome(Advance(writer, 1, 2), AdvanceOutcome::kCommitted, 2);
  WriterAdvance close = Advance(writer, 3, 2);
  close.closing = WriterState::kClosed;
  close.payload.clear();
  ExpectOutcome(close, AdvanceOutcome::kCommitted, 2);
  ExpectOutcome(close, AdvanceOutcome::kRepeat, 2);
  ExpectOutcome(Advance(writer, 3, 3), AdvanceOutcome::kFenced, 2);
  const auto progress = store().ReadProgress(writer.trial_id, {writer.writer_no});
  ASSERT_TRUE(progress.ok()) << progress.status();
  EXPECT_EQ(progress->at(0).state, WriterState::kClosed);
  const OpenedWriter reopened = Open(request);
  EXPECT_EQ(reopened.last_crc32c, 14u);  // a Close has no checksum of its own
  ExpectOutcome(Advance(reopened, 3, 3), AdvanceOutcome::kCommitted, 3);
}

TEST_P(IngestStoreContract, KeepsTheCloseOfARepeat) {
  const OpenedWriter writer = Open(Request("t"));
  ExpectOutcome(Advance(writer, 1, 2), AdvanceOutcome::kCommitted, 2);
  WriterAdvance repeat = Advance(writer, 1, 2);
  repeat.closing = WriterState::kDied;
  ExpectOutcome(repeat, AdvanceOutcome::kRepeat, 2);
  EXPECT_EQ(store().ReadProgress(writer.trial_id, {writer.writer_no})->at(0).state,
            WriterState::kDied);
}

TEST_P(IngestStoreContract, RefusesACloseElsewhere) {
  const OpenedWriter writer = Open(Request("t"));
  ExpectOutcome(Advance(writer, 1, 5), AdvanceOutcome::kCommitted, 5);
  WriterAdvance close = Advance(writer, 4, 3);
  close.closing = WriterState::kClosed;
  ExpectOutcome(close, AdvanceOutcome::kMismatch, 5);
  close = Advance(writer, 8, 7);
  close.closing = WriterState::kClosed;
  ExpectOutcome(close, AdvanceOutcome::kMismatch, 5);
}

TEST_P(IngestStoreContract, ReplaysWhatIsNotFolded) {
  const OpenedWriter a = Open(Request("t"));
  const OpenedWriter b = Open(Request("t"));
  const OpenedWriter c = Open(Request("other"));
  ASSERT_TRUE(Commit({Advance(a, 1, 2), Advance(b, 1, 1), Advance(c, 1, 1)}).ok());
  ASSERT_TRUE(Commit({Advance(a, 3, 6), Advance(b, 2, 2)}).ok());
  under_test_->SetFolded(a.trial_id, a.writer_no, 4);
  under_test_->SetFolded(c.trial_id, c.writer_no, 1);
  under_test_->Restart();
  const std::vector<JournalRow> journal = Journal();
  ASSERT_EQ(journal.size(), 2u);
  // Of the first commit only b is left.
  ASSERT_EQ(journal[0].ranges.size(), 1u);
  EXPECT_EQ(journal[0].ranges[0].writer_no, b.writer_no);
  EXPECT_EQ(journal[0].payloads, std::vector<std::string>{"payload 1-1"});
  ASSERT_EQ(journal[1].ranges.size(), 2u);
  EXPECT_EQ(journal[1].ranges[0].first_sequence, 3u);
  EXPECT_EQ(journal[1].ranges[0].last_sequence, 6u);
  EXPECT_EQ(journal[1].ranges[0].folded_sequence, 4u);
  EXPECT_EQ(journal[1].ranges[0].generation, a.generation);
  EXPECT_EQ(journal[1].payloads, (std::vector<std::string>{"payload 3-6", "payload 2-2"}));
  EXPECT_LT(journal[0].received_time_us, journal[1].received_time_us);
}

// An advance of many chunks comes back in several rows, cut between them.
TEST_P(IngestStoreContract, ReplaysLongAdvancesChunkByChunk) {
  const OpenedWriter writer = Open(Request("t"));
  WriterAdvance advance = Advance(writer, 1, 9);
  advance.payload.clear();
  for (std::uint64_t sequence = 1; sequence <= 9; ++sequence) {
    // The seventh is longer than any row that stays in its page.
    advance.payload.append(sequence == 7 ? 50'000 : 3000, static_cast<char>('0' + sequence));
    advance.cuts.push_back({sequence, advance.payload.size()});
  }
  ASSERT_EQ(CommitOne(advance).outcome, AdvanceOutcome::kCommitted);
  std::string payload;
  std::uint64_t next = 1;
  std::vector<JournalRow> rows = Journal();
  std::sort(rows.begin(), rows.end(), [](const JournalRow& a, const JournalRow& b) {
    return a.ranges.at(0).first_sequence < b.ranges.at(0).first_sequence;
  });
  EXPECT_EQ(rows.size(), 5u);
  for (const JournalRow& row : rows) {
    ASSERT_EQ(row.ranges.size(), 1u);
    EXPECT_EQ(row.ranges[0].first_sequence, next);
    next = row.ranges[0].last_sequence + 1;
    payload += row.payloads.at(0);
  }
  EXPECT_EQ(next, 10u);
  EXPECT_EQ(payload, advance.payload);
}

TEST_P(IngestStoreContract, StopsReplayAtTheFirstError) {
  const OpenedWriter writer = Open(Request("t"));
  for (std::uint64_t i = 1; i <= 10; ++i) ASSERT_TRUE(Commit({Advance(writer, i, i)}).ok());
  int seen = 0;
  const absl::Status status = store().ReadUnfoldedJournal([&](const JournalRow&) -> absl::Status {
    return ++seen == 3 ? absl::CancelledError("enough") : absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(seen, 3);
  EXPECT_EQ(Journal().size(), 10u);
}

TEST_P(IngestStoreContract, SplitsWhatIsTooLargeForOneRow) {
  const OpenedWriter a = Open(Request("t"));
  const OpenedWriter b = Open(Request("t"));
  WriterAdvance large = Advance(a, 1, 1);
  large.payload.assign(7 << 20, 'a');
  WriterAdvance other = Advance(b, 1, 1);
  other.payload.assign(3 << 20, 'b');
  ASSERT_TRUE(Commit({large, other}).ok());
  std::size_t bytes = 0;
  for (const JournalRow& row : Journal()) {
    for (const std::string& payload : row.payloads) bytes += payload.size();
  }
  EXPECT_EQ(bytes, std::size_t{10} << 20);
}

TEST_P(IngestStoreContract, ListsUnfinishedWriters) {
  const OpenedWriter open = Open(Request("open"));
  const OpenedWriter unfolded = Open(Request("unfolded"));
  const OpenedWriter done = Open(Request("done"));
  // Whose master could not store any more that the trial is done.
  const OpenedWriter due = Open(Request("due"));
  for (const OpenedWriter& writer : {unfolded, done, due}) {
    WriterAdvance last = Advance(writer, 1, 1);
    last.closing = WriterState::kClosed;
    ExpectOutcome(last, AdvanceOutcome::kCommitted, 1);
  }
  under_test_->SetFolded(done.trial_id, done.writer_no, 1);
  under_test_->SetFolded(due.trial_id, due.writer_no, 1);
  ASSERT_TRUE(store().SetTrialState(done.trial_id, TrialState::kCompleted, kEpoch).ok());
  const auto writers = store().ReadWriters();
  ASSERT_TRUE(writers.ok()) << writers.status();
  ASSERT_EQ(writers->size(), 3u);
  EXPECT_EQ(writers->at(0).trial_id, open.trial_id);
  EXPECT_EQ(writers->at(1).trial_id, unfolded.trial_id);
  EXPECT_EQ(writers->at(1).committed_sequence, 1u);
  EXPECT_EQ(writers->at(2).trial_id, due.trial_id);
  EXPECT_EQ(writers->at(2).state, WriterState::kClosed);
}

// Random commits, repeats, overlaps, reopenings and folds, against a model of what must be held.
TEST_P(IngestStoreContract, HoldsEachSequenceOnce) {
  std::mt19937_64 random(TestSeed());
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  struct Model {
    OpenWriterRequest request;
    OpenedWriter writer;
    std::uint64_t committed = 0;
  };
  std::vector<Model> models(6);
  for (std::size_t i = 0; i < models.size(); ++i) {
    models[i].request = Request(absl::StrCat("t", i % 2));
    models[i].writer = Open(models[i].request);
  }
  const int rounds = GetParam().name == "Fake" ? 2000 : 400;
  for (int round = 0; round < rounds; ++round) {
    std::vector<WriterAdvance> advances;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < models.size(); ++i) {
      if (below(3) == 0) continue;
      Model& model = models[i];
      if (below(20) == 0) model.writer = Open(model.request);
      // From before the end to beyond it.
      const std::uint64_t back = below(4) == 0 ? below(5) : 0;
      const std::uint64_t ahead = below(10) == 0 ? below(3) : 0;
      const std::uint64_t first =
          std::max<std::uint64_t>(1, model.committed + 1 + ahead - std::min(back, model.committed));
      advances.push_back(Advance(model.writer, first, first + below(4)));
      if (below(15) == 0) advances.back().generation -= 1;
      of.push_back(i);
    }
    std::shuffle(of.begin(), of.end(), random);
    std::shuffle(advances.begin(), advances.end(), random);
    const auto results = Commit(advances);
    ASSERT_TRUE(results.ok()) << results.status();
    for (std::size_t i = 0; i < advances.size(); ++i) {
      const WriterAdvance& advance = advances[i];
      Model& model = *std::find_if(models.begin(), models.end(), [&](const Model& m) {
        return m.writer.trial_id == advance.trial_id && m.writer.writer_no == advance.writer_no;
      });
      AdvanceOutcome expected = AdvanceOutcome::kMismatch;
      if (advance.generation != model.writer.generation) {
        expected = AdvanceOutcome::kFenced;
      } else if (advance.first_sequence == model.committed + 1) {
        expected = AdvanceOutcome::kCommitted;
        model.committed = advance.last_sequence;
      } else if (advance.last_sequence <= model.committed) {
        expected = AdvanceOutcome::kRepeat;
      }
      EXPECT_EQ(results->at(i).outcome, expected);
      EXPECT_EQ(results->at(i).committed_sequence, model.committed);
    }
  }
  std::vector<JournalRow> rows = Journal();
  std::stable_sort(rows.begin(), rows.end(), [](const JournalRow& a, const JournalRow& b) {
    return a.received_time_us < b.received_time_us;
  });
  std::map<std::pair<TrialId, WriterNo>, std::uint64_t> next;
  for (const JournalRow& row : rows) {
    for (const JournalRow::Range& range : row.ranges) {
      std::uint64_t& expected = next[{row.trial_id, range.writer_no}];
      EXPECT_EQ(range.first_sequence, expected + 1);
      expected = range.last_sequence;
    }
  }
  for (const Model& model : models) {
    EXPECT_EQ((next[{model.writer.trial_id, model.writer.writer_no}]), model.committed);
  }
}

}  // namespace
}  // namespace stepwell
