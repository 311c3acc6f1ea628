// What every IngestStore keeps. The suite runs on the fake, which the tests of the server use, and
// on PostgreSQL.
#include "storage/ingest_store.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "storage/gap_ledger.h"
#include "storage/pg_ingest_store.h"
#include "tests/fakes/fake_ingest_store.h"
#include "tests/support/codec_vectors.h"
#include "tests/support/postgres.h"

namespace stepwell {
namespace {

using testing::Connect;
using testing::FakeIngestStore;
using testing::TestPostgres;
using testing::TestSeed;

// A store, and what the suite does behind its back.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual IngestStore& store() = 0;
  // As after a restart of the master.
  virtual void Restart() = 0;
  virtual void SetFolded(TrialId trial_id, WriterNo writer_no, std::uint64_t folded_sequence) = 0;
  virtual std::vector<Gap> Gaps(TrialId trial_id) = 0;
  virtual void AgeOwner(absl::Duration by) = 0;
};

class FakeUnderTest final : public StoreUnderTest {
 public:
  IngestStore& store() override { return store_; }
  void Restart() override {}
  void SetFolded(TrialId trial_id, WriterNo writer_no, std::uint64_t folded) override {
    store_.SetFolded(trial_id, writer_no, folded);
  }
  std::vector<Gap> Gaps(TrialId trial_id) override { return store_.gaps(trial_id); }
  void AgeOwner(absl::Duration by) override { store_.AgeOwner(by); }

 private:
  FakeIngestStore store_;
};

class PgUnderTest final : public StoreUnderTest {
 public:
  PgUnderTest() { Restart(); }
  IngestStore& store() override { return *store_; }
  void Restart() override {
    auto opened = PgIngestStore::Open({.url = url_}, std::make_shared<JournalRing>());
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }
  void SetFolded(TrialId trial_id, WriterNo writer_no, std::uint64_t folded) override {
    Run(absl::StrCat("update stepwell.writers set folded_sequence = ", folded,
                     " where trial_id = ", Value(trial_id), " and writer_no = ", Value(writer_no)));
  }
  std::vector<Gap> Gaps(TrialId trial_id) override {
    const auto rows = sql_->Exec(
        "select writer_no, cause, metric_group, sample_count, first_time_us, last_time_us, "
        "first_sequence, last_sequence, reason from stepwell.gaps where trial_id = $1 "
        "order by gap_no",
        {Value(trial_id)});
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<Gap> gaps;
    for (int row = 0; row < rows->row_count(); ++row) {
      gaps.push_back({.writer_no = WriterNo{rows->Int32(row, 0)},
                      .cause = static_cast<GapCause>(rows->Int32(row, 1)),
                      .metric_group = std::string(rows->Text(row, 2)),
                      .sample_count = rows->Int64(row, 3),
                      .first_time_us = rows->Int64(row, 4),
                      .last_time_us = rows->Int64(row, 5),
                      .first_sequence = static_cast<std::uint64_t>(rows->Int64(row, 6)),
                      .last_sequence = static_cast<std::uint64_t>(rows->Int64(row, 7)),
                      .reason = std::string(rows->Text(row, 8))});
    }
    return gaps;
  }
  void AgeOwner(absl::Duration by) override {
    Run(absl::StrCat("update stepwell.masters set renewed_time = renewed_time - interval '",
                     absl::ToInt64Seconds(by), " seconds'"));
  }

 private:
  void Run(const std::string& sql) {
    const absl::Status status = sql_->ExecScript(sql);
    EXPECT_TRUE(status.ok()) << status;
  }
  const std::string url_ = TestPostgres::Get().FreshMigratedDatabase();
  const std::unique_ptr<PgConnection> sql_ = Connect(url_);
  std::unique_ptr<PgIngestStore> store_;
};

struct Kind {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;
};

constexpr std::int64_t kEpoch = 1;

class IngestStoreContract : public ::testing::TestWithParam<Kind> {
 protected:
  IngestStore& store() { return under_test_->store(); }

  static OpenWriterRequest Request(const std::string& trial, Uuid writer = Uuid::Random()) {
    OpenWriterRequest request;
    request.trial.external_id = trial;
    request.writer = writer;
    request.attempt_key = "job";
    request.agent_id = "agent";
    request.machine = "machine";
    request.owner_epoch = kEpoch;
    return request;
  }
  OpenedWriter Open(const OpenWriterRequest& request) {
    auto opened = store().OpenWriter(request);
    EXPECT_TRUE(opened.ok()) << opened.status();
    return opened.ok() ? *opened : OpenedWriter{};
  }
  static WriterAdvance Advance(const OpenedWriter& writer, std::uint64_t first,
                               std::uint64_t last) {
    WriterAdvance advance;
    advance.trial_id = writer.trial_id;
    advance.writer_no = writer.writer_no;
    advance.generation = writer.generation;
    advance.first_sequence = first;
    advance.last_sequence = last;
    advance.last_crc32c = static_cast<std::uint32_t>(last * 7);
    advance.payload = absl::StrCat("payload ", first, "-", last);
    return advance;
  }
  absl::StatusOr<std::vector<AdvanceResult>> Commit(std::vector<WriterAdvance> advances,
                                                    std::int64_t epoch = kEpoch) {
    CommitGroupRequest request;
    request.owner_epoch = epoch;
    request.received_time_us = ++now_us_;
    request.advances = std::move(advances);
    return store().Commit(request);
  }
  AdvanceResult CommitOne(const WriterAdvance& advance) {
    auto results = Commit({advance});
    EXPECT_TRUE(results.ok()) << results.status();
    return results.ok() ? results->at(0) : AdvanceResult{AdvanceOutcome::kFenced, 999};
  }
  void ExpectOutcome(const WriterAdvance& advance, AdvanceOutcome outcome,
                     std::uint64_t committed_sequence) {
    const AdvanceResult result = CommitOne(advance);
    EXPECT_EQ(result.outcome, outcome);
    EXPECT_EQ(result.committed_sequence, committed_sequence);
  }
  std::vector<JournalRow> Journal() {
    std::vector<JournalRow> rows;
    const absl::Status status = store().ReadUnfoldedJournal([&](JournalRow row) {
      rows.push_back(std::move(row));
      return absl::OkStatus();
    });
    EXPECT_TRUE(status.ok()) << status;
    return rows;
  }
  static Gap GapOf(GapCause cause, std::uint64_t first, std::uint64_t last) {
    Gap gap;
    gap.cause = cause;
    gap.sample_count = static_cast<std::int64_t>(last - first) + 1;
    gap.first_sequence = first;
    gap.last_sequence = last;
    return gap;
  }

  std::int64_t now_us_ = 1'700'000'000'000'000;
  const std::unique_ptr<StoreUnderTest> under_test_ = GetParam().make();
};

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
  ASSERT_EQ(store().AcquireOwnership("first", "a:1", 0)->epoch, 1);
  const OpenedWriter writer = Open(Request("t"));
  ExpectOutcome(Advance(writer, 1, 1), AdvanceOutcome::kCommitted, 1);
  under_test_->AgeOwner(absl::Seconds(11));
  const auto taken = store().AcquireOwnership("second", "b:2", 0);
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
  ASSERT_EQ(store().AcquireOwnership("m", "a:1", 0)->epoch, 1);
  const OpenWriterRequest request = Request("t");
  const OpenedWriter writer = Open(request);
  WriterAdvance last = Advance(writer, 1, 1);
  last.closing = WriterState::kClosed;
  ExpectOutcome(last, AdvanceOutcome::kCommitted, 1);
  under_test_->SetFolded(writer.trial_id, writer.writer_no, 1);
  ASSERT_TRUE(store().SetTrialState(writer.trial_id, TrialState::kCompleted, kEpoch).ok());
  ASSERT_EQ(store().AcquireOwnership("m", "a:1", 0)->epoch, 2);
  ASSERT_TRUE(store().FenceTrials(2).ok());
  EXPECT_TRUE(Commit({Advance(writer, 2, 2)}).ok());  // not fenced, since nothing was open
  OpenWriterRequest again = request;
  again.owner_epoch = 2;
  const OpenedWriter reopened = Open(again);
  EXPECT_EQ(Commit({Advance(reopened, 2, 2)}).status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(Commit({Advance(reopened, 2, 2)}, 2).ok());
}

TEST_P(IngestStoreContract, LetsOneMasterOwn) {
  const auto first = store().AcquireOwnership("first", "a:1", 0);
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_TRUE(first->is_owner);
  const auto standby = store().AcquireOwnership("second", "b:2", 0);
  ASSERT_TRUE(standby.ok()) << standby.status();
  EXPECT_FALSE(standby->is_owner);
  EXPECT_EQ(standby->owner_id, "first");
  EXPECT_LT(standby->renewed_age_seconds, 10);
  EXPECT_TRUE(store().AcquireOwnership("first", "a:1", first->epoch)->is_owner);
  EXPECT_FALSE(store().AcquireOwnership("first", "a:1", first->epoch + 1)->is_owner);
  const auto restarted = store().AcquireOwnership("first", "a:1", 0);
  EXPECT_TRUE(restarted->is_owner);
  EXPECT_GT(restarted->epoch, first->epoch);
  EXPECT_FALSE(store().AcquireOwnership("first", "a:1", first->epoch)->is_owner);
  under_test_->AgeOwner(absl::Seconds(11));
  const auto taken = store().AcquireOwnership("second", "b:2", 0);
  EXPECT_TRUE(taken->is_owner);
  EXPECT_GT(taken->epoch, restarted->epoch);
  // The former owner does not get it back by renewing, however old the row.
  under_test_->AgeOwner(absl::Seconds(100));
  EXPECT_FALSE(store().AcquireOwnership("first", "a:1", restarted->epoch)->is_owner);
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
  for (const OpenedWriter& writer : {unfolded, done}) {
    WriterAdvance last = Advance(writer, 1, 1);
    last.closing = WriterState::kClosed;
    ExpectOutcome(last, AdvanceOutcome::kCommitted, 1);
  }
  under_test_->SetFolded(done.trial_id, done.writer_no, 1);
  const auto writers = store().ReadWriters();
  ASSERT_TRUE(writers.ok()) << writers.status();
  ASSERT_EQ(writers->size(), 2u);
  EXPECT_EQ(writers->at(0).trial_id, open.trial_id);
  EXPECT_EQ(writers->at(1).trial_id, unfolded.trial_id);
  EXPECT_EQ(writers->at(1).committed_sequence, 1u);
}

TEST_P(IngestStoreContract, CoalescesGapsThatGoOn) {
  const OpenedWriter writer = Open(Request("t"));
  for (std::uint64_t i = 1; i <= 30; ++i) {
    WriterAdvance advance = Advance(writer, i, i);
    advance.payload.clear();
    advance.gaps.push_back(GapOf(GapCause::kSpoolFull, i, i));
    Gap dropped;
    dropped.cause = GapCause::kRingFull;
    dropped.metric_group = i % 2 == 0 ? "timing" : "gpu";
    dropped.sample_count = 10;
    dropped.first_time_us = static_cast<std::int64_t>(i) * 1'000'000;
    dropped.last_time_us = dropped.first_time_us + 500'000;
    advance.gaps.push_back(dropped);
    ExpectOutcome(advance, AdvanceOutcome::kCommitted, i);
  }
  const std::vector<Gap> gaps = under_test_->Gaps(writer.trial_id);
  ASSERT_EQ(gaps.size(), 3u);
  EXPECT_EQ(gaps[0].first_sequence, 1u);
  EXPECT_EQ(gaps[0].last_sequence, 30u);
  EXPECT_EQ(gaps[0].sample_count, 30);
  EXPECT_EQ(gaps[0].writer_no, writer.writer_no);
  EXPECT_EQ(gaps[1].metric_group, "gpu");
  EXPECT_EQ(gaps[1].sample_count, 150);
  EXPECT_EQ(gaps[1].first_time_us, 1'000'000);
  EXPECT_EQ(gaps[1].last_time_us, 29'500'000);
  EXPECT_EQ(gaps[2].sample_count, 150);
}

TEST_P(IngestStoreContract, KeepsGapsApartThatAreNotOne) {
  const OpenedWriter writer = Open(Request("t"));
  WriterAdvance advance = Advance(writer, 1, 20);
  advance.gaps = {GapOf(GapCause::kRejected, 1, 2), GapOf(GapCause::kRejected, 5, 6),
                  GapOf(GapCause::kSpoolFull, 7, 8)};
  ExpectOutcome(advance, AdvanceOutcome::kCommitted, 20);
  EXPECT_EQ(under_test_->Gaps(writer.trial_id).size(), 3u);
}

TEST_P(IngestStoreContract, BoundsTheGapRowsOfAWriter) {
  const OpenedWriter writer = Open(Request("t"));
  std::uint64_t sequence = 1;
  for (int commit = 0; commit < 3; ++commit) {
    WriterAdvance advance = Advance(writer, sequence, sequence + 999);
    for (int i = 0; i < 500; ++i, sequence += 2) {
      advance.gaps.push_back(GapOf(GapCause::kRejected, sequence, sequence));
    }
    ExpectOutcome(advance, AdvanceOutcome::kCommitted, sequence - 1);
  }
  const std::vector<Gap> gaps = under_test_->Gaps(writer.trial_id);
  ASSERT_EQ(gaps.size(), static_cast<std::size_t>(kGapRowsMax));
  std::int64_t sample_count = 0;
  for (const Gap& gap : gaps) sample_count += gap.sample_count;
  EXPECT_EQ(sample_count, 1500);
  EXPECT_EQ(gaps.back().last_sequence, sequence - 2);
}

TEST_P(IngestStoreContract, TellsRejectionsAtOpenAndStoresNoneOfARepeat) {
  const OpenWriterRequest request = Request("t");
  const OpenedWriter writer = Open(request);
  WriterAdvance advance = Advance(writer, 1, 3);
  advance.gaps = {GapOf(GapCause::kRejected, 2, 2)};
  advance.gaps[0].reason = "SERIES_LIMIT";
  ExpectOutcome(advance, AdvanceOutcome::kCommitted, 3);
  ExpectOutcome(advance, AdvanceOutcome::kRepeat, 3);
  const OpenedWriter again = Open(request);
  ASSERT_EQ(again.rejections.size(), 1u);
  EXPECT_EQ(again.rejections[0].first_sequence, 2u);
  EXPECT_EQ(again.rejections[0].sample_count, 1);
  EXPECT_EQ(again.rejections[0].reason, "SERIES_LIMIT");
}

TEST_P(IngestStoreContract, NumbersTrialsByIdAndByName) {
  OpenWriterRequest by_id = Request("");
  by_id.trial.trial_id = 7;
  EXPECT_EQ(Open(by_id).trial_id, TrialId{7});
  by_id.trial.trial_id = 999'999'999;
  EXPECT_EQ(Open(by_id).trial_id, TrialId{999'999'999});
  const OpenedWriter named = Open(Request("name"));
  EXPECT_GE(Value(named.trial_id), 1'000'000'000);
  EXPECT_EQ(Open(Request("name")).trial_id, named.trial_id);
  OpenWriterRequest elsewhere = Request("name");
  elsewhere.trial.project = "other";
  EXPECT_NE(Open(elsewhere).trial_id, named.trial_id);
  by_id.trial.trial_id = Value(named.trial_id);
  EXPECT_EQ(Open(by_id).trial_id, named.trial_id);
  by_id.trial.trial_id = 2'000'000'000;
  EXPECT_EQ(store().OpenWriter(by_id).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(IngestStoreContract, RefusesATrialThatIsNotNamed) {
  OpenWriterRequest request = Request("");
  EXPECT_EQ(store().OpenWriter(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.trial.trial_id = -1;
  EXPECT_EQ(store().OpenWriter(request).status().code(), absl::StatusCode::kInvalidArgument);
  request.trial = {.trial_id = 7, .external_id = "both"};
  EXPECT_EQ(store().OpenWriter(request).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_P(IngestStoreContract, NumbersAttemptsByFirstSightOfTheirKey) {
  OpenWriterRequest request = Request("t");
  EXPECT_EQ(Open(request).attempt, 1);
  request.writer = Uuid::Random();
  request.attempt_key = "restarted";
  EXPECT_EQ(Open(request).attempt, 2);
  request.writer = Uuid::Random();
  request.attempt_key = "job";
  EXPECT_EQ(Open(request).attempt, 1);
  request.attempt_key = "restarted";
  EXPECT_EQ(Open(request).attempt, 1);  // a writer keeps its attempt
  request.writer = Uuid::Random();
  request.attempt_key.clear();
  request.is_sampler = true;
  EXPECT_EQ(Open(request).attempt, 2);  // the newest
  request.writer = Uuid::Random();
  request.is_sampler = false;
  EXPECT_EQ(Open(request).attempt, 3);  // a rank without key is an attempt of its own
  EXPECT_EQ(Open(request).attempt, 3);
}

TEST_P(IngestStoreContract, GivesTheSamplersFirstAttemptToTheFirstKey) {
  OpenWriterRequest request = Request("t");
  request.attempt_key.clear();
  request.is_sampler = true;
  EXPECT_EQ(Open(request).attempt, 1);
  EXPECT_EQ(Open(Request("t")).attempt, 1);
  OpenWriterRequest other = Request("t");
  other.attempt_key = "other";
  EXPECT_EQ(Open(other).attempt, 2);
}

SeriesDefinition Definition(const std::string& name, Labels labels = {}) {
  SeriesDefinition definition;
  definition.key = {.metric_group = "gpu", .name = name, .labels = std::move(labels)};
  definition.unit = "percent";
  return definition;
}

TEST_P(IngestStoreContract, NumbersSeries) {
  const TrialId trial_id = Open(Request("t")).trial_id;
  const std::vector<SeriesDefinition> definitions = {
      Definition("util", {{"device", "a"}}), Definition("util", {{"device", "\"\\\n\xc3\xa9"}}),
      Definition("util", {{"device", "a"}}), Definition("memory")};
  const auto numbers = store().FindOrCreateSeries(trial_id, definitions, 10);
  ASSERT_TRUE(numbers.ok()) << numbers.status();
  EXPECT_EQ(*numbers, (std::vector{SeriesNo{1}, SeriesNo{2}, SeriesNo{1}, SeriesNo{3}}));
  const auto again =
      store().FindOrCreateSeries(trial_id, {Definition("memory"), Definition("x")}, 10);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, (std::vector{SeriesNo{3}, SeriesNo{4}}));
  EXPECT_TRUE(store().FindOrCreateSeries(trial_id, {}, 10)->empty());
  EXPECT_EQ(store().FindOrCreateSeries(TrialId{5}, {Definition("x")}, 10).status().code(),
            absl::StatusCode::kNotFound);
}

TEST_P(IngestStoreContract, RefusesSeriesBeyondTheLimitAndWithAnotherUnit) {
  const TrialId trial_id = Open(Request("t")).trial_id;
  ASSERT_TRUE(store().FindOrCreateSeries(trial_id, {Definition("a"), Definition("b")}, 2).ok());
  EXPECT_EQ(store().FindOrCreateSeries(trial_id, {Definition("c")}, 2).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(store().FindOrCreateSeries(trial_id, {Definition("b")}, 2).ok());
  SeriesDefinition other_unit = Definition("a");
  other_unit.unit = "bytes";
  EXPECT_EQ(store().FindOrCreateSeries(trial_id, {other_unit}, 2).status().code(),
            absl::StatusCode::kInvalidArgument);
  SeriesDefinition other_kind = Definition("a");
  other_kind.kind = SeriesKind::kCounter;
  EXPECT_EQ(store().FindOrCreateSeries(trial_id, {Definition("c"), other_kind}, 9).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(*store().FindOrCreateSeries(trial_id, {Definition("d")}, 9),
            std::vector{SeriesNo{3}});  // nothing is left of what was refused
}

TEST_P(IngestStoreContract, SurvivesRacesOfOpenAndSeries) {
  constexpr int kThreads = 4;
  std::vector<std::vector<SeriesNo>> numbers(kThreads);
  std::vector<OpenedWriter> opened(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      OpenWriterRequest request = Request("raced");
      request.trial.project = "raced";
      opened[i] = Open(request);
      std::vector<SeriesDefinition> definitions;
      for (int series = 0; series < 50; ++series) {
        definitions.push_back(Definition(absl::StrCat("s", (series + i * 10) % 50)));
      }
      const auto found = store().FindOrCreateSeries(opened[i].trial_id, definitions, 50);
      ASSERT_TRUE(found.ok()) << found.status();
      numbers[i] = *found;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    EXPECT_EQ(opened[i].trial_id, opened[0].trial_id);
    EXPECT_EQ(opened[i].attempt, 1);
    for (int series = 0; series < 50; ++series) {
      EXPECT_EQ(numbers[i][series], numbers[0][(series + i * 10) % 50]);
    }
  }
}

TEST_P(IngestStoreContract, SetsTheStateOfATrial) {
  const OpenedWriter writer = Open(Request("t"));
  EXPECT_TRUE(store().SetTrialState(writer.trial_id, TrialState::kCompleted, kEpoch).ok());
  EXPECT_EQ(store().SetTrialState(TrialId{3}, TrialState::kLost, kEpoch).code(),
            absl::StatusCode::kNotFound);
}

TEST_P(IngestStoreContract, HasOneIncarnation) {
  const auto first = store().ReadIncarnation();
  ASSERT_TRUE(first.ok()) << first.status();
  under_test_->Restart();
  EXPECT_EQ(*store().ReadIncarnation(), *first);
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
  std::map<std::pair<TrialId, WriterNo>, std::uint64_t> next;
  for (const JournalRow& row : Journal()) {
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

INSTANTIATE_TEST_SUITE_P(
    Stores, IngestStoreContract,
    ::testing::Values(Kind{"Fake", [] { return std::make_unique<FakeUnderTest>(); }},
                      Kind{"Postgres", [] { return std::make_unique<PgUnderTest>(); }}),
    [](const ::testing::TestParamInfo<Kind>& kind) { return kind.param.name; });

}  // namespace
}  // namespace stepwell
