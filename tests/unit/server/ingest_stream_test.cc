// A stream, the committer and the registry together, on a store in memory.
#include "server/ingest_stream.h"
#include "base/steady_time.h"

#include <google/protobuf/unknown_field_set.h>

#include <numeric>

#include "storage/pg_error.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

TEST_F(IngestStreamTest, CommitsThenHeadsThenAck) {
  auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  EXPECT_GT(opened.credit_bytes(), 0);
  for (std::uint64_t i = 1; i <= 3; ++i) stream->Handle(Send(writer_, i));
  const auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 1U) << "acks of one writer are one";
  EXPECT_EQ(answers[0].ack().committed_sequence(), 3U);
  const auto trial = static_cast<TrialId>(opened.trial_id());
  EXPECT_EQ(heads_.UnfoldedSampleCount(trial), 6);
  EXPECT_EQ(stats_.samples_committed, 6U);
  stream->Finish();
  EXPECT_EQ(registry_.open_count(), 0U);
}

TEST_F(IngestStreamTest, RepeatsAreAckedHolesRefused) {
  auto stream = NewStream();
  Begin(*stream, writer_);
  stream->Handle(Send(writer_, 1));
  Answers(*stream);
  stream->Handle(Send(writer_, 1));
  auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].ack().committed_sequence(), 1U);
  EXPECT_EQ(stats_.chunks_repeated, 1U);
  stream->Handle(Send(writer_, 3));
  answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].refused().reason(), "SEQUENCE_HOLE");
  EXPECT_EQ(answers[0].refused().expected_sequence(), 2U);
  EXPECT_FALSE(answers[0].refused().terminal());
  EXPECT_EQ(stats_.samples_committed, 2U);
  stream->Finish();
}

TEST_F(IngestStreamTest, BadContentIsConsumedAndOtherWritersGoOn) {
  auto stream = NewStream();
  const Uuid healthy = Uuid::Random();
  const pb::Opened opened = Begin(*stream, writer_);
  Begin(*stream, healthy);
  stream->Handle(Send(writer_, 1, 99));
  stream->Handle(Send(writer_, 2));
  stream->Handle(Send(healthy, 1));
  std::map<std::string, pb::Ack> acks;
  for (const auto& answer : Answers(*stream)) acks[answer.ack().writer()] = answer.ack();
  const pb::Ack& ack = acks[writer_.ToBytes()];
  EXPECT_EQ(ack.committed_sequence(), 2U);
  ASSERT_EQ(ack.rejections_size(), 1);
  EXPECT_EQ(ack.rejections(0).reason(), "UNKNOWN_REF");
  EXPECT_EQ(ack.rejections(0).first_sequence(), 1U);
  EXPECT_EQ(acks[healthy.ToBytes()].committed_sequence(), 1U);
  const auto gaps = store_.gaps(static_cast<TrialId>(opened.trial_id()));
  ASSERT_EQ(gaps.size(), 1U);
  EXPECT_EQ(gaps[0].cause, GapCause::kRejected);
  EXPECT_EQ(gaps[0].sample_count, 2);
  stream->Finish();
}

TEST_F(IngestStreamTest, ADatabaseThatIsDownIsWaitedForWithTheSameGroup) {
  auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  store_.FailNext(absl::UnavailableError("down"));
  stream->Handle(Send(writer_, 1));
  const auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].ack().committed_sequence(), 1U);
  EXPECT_EQ(heads_.UnfoldedSampleCount(static_cast<TrialId>(opened.trial_id())), 2);
  stream->Finish();
}

TEST_F(IngestStreamTest, ACommitInDoubtThatHappenedCountsOnce) {
  auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  store_.FailNextAfterStoring(CommitUnknown("connection lost"));
  stream->Handle(Send(writer_, 1));
  stream->Handle(Send(writer_, 2));
  const auto answers = Answers(*stream);
  ASSERT_FALSE(answers.empty());
  EXPECT_EQ(answers.back().ack().committed_sequence(), 2U);
  EXPECT_EQ(stats_.commits_in_doubt, 1U);
  EXPECT_EQ(heads_.UnfoldedSampleCount(static_cast<TrialId>(opened.trial_id())), 4);
  stream->Finish();
}

// Found by the simulation: the repeat is fenced, and heads went without the chunk; the next fold passed it.
TEST_F(IngestStreamTest, WhatACommitInDoubtStoredIsInHeadsThoughItsWriterWasOpenedMeanwhile) {
  const auto first = NewStream();
  Begin(*first, writer_);
  const auto second = NewStream();
  const auto open_again = [&] { second->Handle(Open(writer_)); };
  store_.OnNextCommit([&] { store_.OnNextCommit(open_again); });  // before the repeat
  store_.FailNextAfterStoring(CommitUnknown("connection lost, and the database away"));
  first->Handle(Send(writer_, 1));
  ASSERT_TRUE(first->WaitSettled(SteadyTime::Now() + absl::Seconds(30)));
  const auto answers = Answers(*second);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].opened().committed_sequence(), 1U) << "its client will not send it again";
  EXPECT_EQ(heads_.PinAll().chunks().size(), 1U);
}

TEST_F(IngestStreamTest, DataThatTheStoreRefusesIsNarrowedDownAndConsumed) {
  auto stream = NewStream();
  Begin(*stream, writer_);
  store_.set_block_commits(true);
  stream->Handle(Send(writer_, 1));
  store_.FailNext(absl::InvalidArgumentError("22P05: poison"));
  stream->Handle(Send(writer_, 2));
  store_.set_block_commits(false);
  std::uint64_t committed = 0;
  int rejection_count = 0;
  for (const auto& answer : Answers(*stream)) {
    committed = std::max(committed, answer.ack().committed_sequence());
    rejection_count += answer.ack().rejections_size();
  }
  EXPECT_EQ(committed, 2U) << "the writer goes on";
  EXPECT_LE(rejection_count, 1);
  stream->Finish();
}

TEST_F(IngestStreamTest, ANewerStreamFencesTheOlder) {
  auto older = NewStream();
  auto newer = NewStream();
  Begin(*older, writer_);
  EXPECT_EQ(Begin(*newer, writer_).generation(), 2U);
  auto answers = Answers(*older);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].refused().reason(), "FENCED");
  EXPECT_TRUE(answers[0].refused().terminal());
  older->Handle(Send(writer_, 1));
  answers = Answers(*older);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].refused().reason(), "FENCED");
  newer->Handle(Send(writer_, 1));
  EXPECT_EQ(Answers(*newer).at(0).ack().committed_sequence(), 1U);
  older->Finish();
  EXPECT_EQ(registry_.open_count(), 1U) << "the older one's end leaves the newer one's claim";
  newer->Finish();
}

TEST_F(IngestStreamTest, CloseIsAckedOnceAllBeforeItIsCommitted) {
  auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  stream->Handle(Send(writer_, 1));
  pb::StreamChunksRequest close;
  close.mutable_close()->set_writer(writer_.ToBytes());
  close.mutable_close()->set_final_sequence(1);
  close.mutable_close()->set_died(true);
  stream->Handle(close);
  stream->Handle(close);
  const auto answers = Answers(*stream);
  ASSERT_FALSE(answers.empty());
  EXPECT_TRUE(answers.back().ack().closed());
  EXPECT_EQ(answers.back().ack().committed_sequence(), 1U);
  const auto facts = registry_.FactsOf(static_cast<TrialId>(opened.trial_id()));
  EXPECT_EQ(facts.at(0).state, WriterState::kDied);
  stream->Handle(Send(writer_, 2));
  EXPECT_EQ(Answers(*stream).at(0).refused().reason(), "CLOSED");
  stream->Finish();
}

TEST_F(IngestStreamTest, AnotherOwnerEndsTheStream) {
  auto stream = NewStream();
  Begin(*stream, writer_);
  const auto seen = store_.AcquireOwnership({.master_id = "master-b", .address = "there"});
  ASSERT_TRUE(seen.ok());
  const auto other = store_.AcquireOwnership(
      {.master_id = "master-b", .address = "there", .lapsed_renewal_us = seen->renewal_us});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(other->is_owner);
  ASSERT_TRUE(store_.FenceTrials(other->epoch).ok());
  stream->Handle(Send(writer_, 1));
  EXPECT_FALSE(stream->WaitSettled(SteadyTime::Now() + absl::Seconds(10)));
  EXPECT_EQ(stream->end_status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(state_.lost_reported());
  EXPECT_EQ(heads_.unfolded_bytes(), 0);
  stream->Finish();
}

TEST_F(IngestStreamTest, AStandbyTakesNoStream) {
  state_.EndOwnership(state_.epoch(), [] {});
  state_.BecomeStandby("master-b", 1.5);
  const auto stream = IngestStream::Create(context_, [] {});
  EXPECT_EQ(stream.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(stream.status().message(), "standby: master-b owns the database, renewed 1.5 s ago");
}

TEST_F(IngestStreamTest, MessagesOfUnknownWritersAreRefused) {
  auto stream = NewStream();
  stream->Handle(Send(writer_, 1));
  stream->Handle(pb::StreamChunksRequest());
  const auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].refused().reason(), "NOT_OPEN");
  EXPECT_EQ(answers[1].refused().reason(), "MESSAGE_UNKNOWN");
  stream->Finish();
}

// All that a client of a newer contract says of ours is stored; a message of a kind that is unknown
// here is answered, so that the client knows, and takes nothing with it.
TEST_F(IngestStreamTest, ANewerClientsUnknownFieldsAndMessagesLoseNothing) {
  const auto newer = [](pb::StreamChunksRequest message) {
    const auto add = [](google::protobuf::Message& to) {
      auto& fields = *to.GetReflection()->MutableUnknownFields(&to);
      fields.AddVarint(101, 7);
      fields.AddLengthDelimited(102, "\xff is no UTF-8");
    };
    if (message.has_open()) add(*message.mutable_open());
    if (message.has_definitions()) {
      add(*message.mutable_definitions());
      add(*message.mutable_definitions()->mutable_definitions(0));
    }
    if (message.has_chunk()) add(*message.mutable_chunk());
    if (message.has_close()) add(*message.mutable_close());
    add(message);
    return message;
  };
  pb::StreamChunksRequest unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(15, "\x08\x01");
  auto stream = NewStream();
  stream->Handle(newer(Open(writer_)));
  stream->Handle(newer(Define(writer_)));
  stream->Handle(newer(Send(writer_, 1)));
  stream->Handle(unknown);
  stream->Handle(newer(Send(writer_, 2)));
  stream->Handle(newer(Close(writer_, 2)));
  int refused_count = 0;
  bool is_closed = false;
  for (const auto& answer : Answers(*stream)) {
    refused_count += answer.has_refused() ? 1 : 0;
    EXPECT_FALSE(answer.refused().terminal());
    EXPECT_EQ(answer.ack().rejections_size(), 0);
    if (answer.ack().closed()) is_closed = answer.ack().committed_sequence() == 2;
  }
  EXPECT_EQ(refused_count, 1) << "that of the unknown message";
  EXPECT_TRUE(is_closed);
  EXPECT_EQ(stats_.samples_committed, 4U);
  stream->Finish();
}

TEST_F(IngestStreamTest, ATakeOverReplaysWhatWasNotFolded) {
  auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  const auto trial = static_cast<TrialId>(opened.trial_id());
  for (std::uint64_t i = 1; i <= 5; ++i) stream->Handle(Send(writer_, i));
  stream->Handle(Send(writer_, 6, 99));  // consumed, holds nothing
  Answers(*stream);
  stream->Finish();
  store_.SetFolded(trial, static_cast<WriterNo>(opened.writer_no()), 2);
  state_.EndOwnership(state_.epoch(), [&] { heads_.Clear(); });
  const auto owner = store_.AcquireOwnership({.master_id = "master-a", .address = "here"});
  ASSERT_TRUE(owner.ok());
  const auto taken = TakeOver(Recovery(), owner->epoch);
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_EQ(taken->trials, std::vector<TrialId>{trial});
  state_.BecomeOwner(owner->epoch, true);
  EXPECT_TRUE(heads_.Pin(trial).recovering());
  // Ingest is open while the journal is still to be replayed.
  auto next = NewStream();
  EXPECT_EQ(Begin(*next, writer_).committed_sequence(), 6U);
  next->Handle(Send(writer_, 7));
  EXPECT_EQ(Answers(*next).at(0).ack().committed_sequence(), 7U);
  EXPECT_TRUE(heads_.PlanFold(std::nullopt, 1 << 30).folds.empty());
  ASSERT_TRUE(ReplayJournal(Recovery(), owner->epoch, *taken).ok());
  EXPECT_FALSE(heads_.Pin(trial).recovering());
  EXPECT_EQ(heads_.UnfoldedSampleCount(trial), 2 * 4) << "3, 4, 5 and 7, each once";
  const Heads::FoldPlan plan = heads_.PlanFold(std::nullopt, 1 << 30);
  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_EQ(plan.folds[0].from_sequence_exclusive, 2U);
  EXPECT_EQ(plan.folds[0].to_sequence, 7U);
  next->Finish();
}

// Its take-over did not see them, and Opened counts them as held: the client lets go of what it has.
TEST_F(IngestStreamTest, WhatAFormerOwnerCommittedUnseenIsReplayedBeforeAnyFoldPassesIt) {
  auto stream = NewStream();
  const auto trial = static_cast<TrialId>(Begin(*stream, writer_).trial_id());
  for (std::uint64_t i = 1; i <= 2; ++i) stream->Handle(Send(writer_, i));
  Answers(*stream);
  stream->Finish();
  heads_.Clear();  // as if they had come from elsewhere since
  auto next = NewStream();
  EXPECT_EQ(Begin(*next, writer_).committed_sequence(), 2U);
  next->Handle(Send(writer_, 3));
  Answers(*next);
  next->Finish();
  Heads::FoldPlan plan = heads_.PlanFold(std::nullopt, 1 << 30);
  EXPECT_TRUE(plan.folds.empty());
  EXPECT_TRUE(plan.hole.has_value());
  // Which ends the epoch (FoldLoopTest).
  state_.EndOwnership(state_.epoch(), [&] { heads_.Clear(); });
  const auto owner = store_.AcquireOwnership({.master_id = "master-a", .address = "here"});
  const auto taken = TakeOver(Recovery(), owner->epoch);
  ASSERT_TRUE(taken.ok()) << taken.status();
  state_.BecomeOwner(owner->epoch, true);
  ASSERT_TRUE(ReplayJournal(Recovery(), owner->epoch, *taken).ok());
  EXPECT_EQ(heads_.UnfoldedSampleCount(trial), 3 * 2);
  plan = heads_.PlanFold(std::nullopt, 1 << 30);
  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_EQ(plan.folds[0].to_sequence, 3U);
  EXPECT_FALSE(plan.hole.has_value());
}

TEST_F(IngestStreamTest, WhatTheJournalLostIsDeclaredByTheNextFold) {
  auto stream = NewStream();
  const pb::Opened opened = Begin(*stream, writer_);
  const auto trial = static_cast<TrialId>(opened.trial_id());
  for (std::uint64_t i = 1; i <= 6; ++i) {
    stream->Handle(Send(writer_, i));
    Answers(*stream);  // so that each is a commit of its own
  }
  stream->Finish();
  store_.ChangeJournal(1, [](JournalRow& row) {
    row.payloads.clear();
    row.damage = absl::DataLossError("rotten");
  });
  store_.ChangeJournal(2, [](JournalRow& row) { row.payloads[0].resize(3); });
  // The body alone: what it is of is known.
  store_.ChangeJournal(4, [](JournalRow& row) { row.payloads[0].back() ^= 0x55; });
  store_.ChangeJournal(5, [](JournalRow& row) { row.ranges.clear(); });
  state_.EndOwnership(state_.epoch(), [&] { heads_.Clear(); });
  const auto owner = store_.AcquireOwnership({.master_id = "master-a", .address = "here"});
  const auto taken = TakeOver(Recovery(), owner->epoch);
  ASSERT_TRUE(taken.ok()) << taken.status();
  state_.BecomeOwner(owner->epoch, true);
  ASSERT_TRUE(ReplayJournal(Recovery(), owner->epoch, *taken).ok());
  EXPECT_EQ(heads_.UnfoldedSampleCount(trial), 2 * 2) << "1 and 4";
  EXPECT_EQ(stats_.sequences_lost, 4U);
  const Heads::FoldPlan plan = heads_.PlanFold(std::nullopt, 1 << 30);
  ASSERT_EQ(plan.folds.size(), 1U);
  EXPECT_EQ(plan.folds[0].to_sequence, 6U) << "the folds pass it";
  ASSERT_EQ(plan.folds[0].gaps.size(), 2U);
  const Gap& first = plan.folds[0].gaps[0];
  EXPECT_EQ(first.cause, GapCause::kSpoolCorrupt);
  EXPECT_EQ(first.reason, "JOURNAL_DAMAGED");
  EXPECT_EQ(first.first_sequence, 2U);
  EXPECT_EQ(first.last_sequence, 3U);
  EXPECT_EQ(plan.folds[0].gaps[1].first_sequence, 5U);
  EXPECT_EQ(plan.folds[0].gaps[1].last_sequence, 6U);
}

// What /metrics tells of them.
TEST_F(IngestStreamTest, WhatIsMissingIsCountedOnceItIsCommitted) {
  const auto stream = NewStream();
  Begin(*stream, writer_);
  stream->Handle(Send(writer_, 1));
  pb::StreamChunksRequest with_loss = Send(writer_, 2);
  pb::ChunkBody body = MakeBody(1, {1, 2});
  pb::Loss& loss = *body.add_losses();
  loss.set_cause(pb::GAP_CAUSE_RING_FULL);
  loss.set_sample_count(40);
  *with_loss.mutable_chunk() = MakeChunk(2, body);
  with_loss.mutable_chunk()->set_writer(writer_.ToBytes());
  stream->Handle(with_loss);
  stream->Handle(Send(writer_, 3, 9));  // of a ref that nobody defined
  EXPECT_EQ(Answers(*stream).size(), 1U);
  EXPECT_EQ(stats_.chunks_committed, 3U);
  EXPECT_EQ(stats_.chunks_rejected, 1U);
  EXPECT_EQ(stats_.missing.Gaps(GapCause::kRingFull).sample_count, 40U);
  EXPECT_EQ(stats_.missing.Gaps(GapCause::kRejected).count, 1U);
  const auto rejected = stats_.missing.Rejected();
  ASSERT_EQ(rejected.size(), 1U);
  EXPECT_EQ(rejected.at("UNKNOWN_REF").count, 1U);
  EXPECT_EQ(rejected.at("UNKNOWN_REF").sample_count, 2U);
  const auto total = [](const LatencyHistogram& latency) {
    const auto counts = latency.Read().counts;
    return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
  };
  EXPECT_EQ(total(stats_.ack_latency), 3U);
  EXPECT_EQ(total(stats_.commit_duration), stats_.commit_groups);
  EXPECT_GT(stats_.ack_latency.Read().sum_seconds, 0);
  EXPECT_LT(stats_.ack_latency.Read().sum_seconds, 30);
  // A repeat is no new loss.
  stream->Handle(with_loss);
  Answers(*stream);
  EXPECT_EQ(stats_.missing.Gaps(GapCause::kRingFull).count, 1U);
  EXPECT_EQ(total(stats_.ack_latency), 3U) << "nor does it wait for a commit";
}

}  // namespace
}  // namespace stepwell
