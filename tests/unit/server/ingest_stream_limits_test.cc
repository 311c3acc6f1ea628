// What a stream holds at most, and who may be on it.
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "server/limits.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

class IngestStreamLimitsTest : public IngestStreamTest {};

TEST_F(IngestStreamLimitsTest, AWriterIsInOneTrialOfAStreamAtATime) {
  auto stream = NewStream();
  const pb::Opened first = Begin(*stream, writer_);
  // The other trial has this writer, too, on a stream of its own.
  auto other = NewStream();
  other->Handle(Open(writer_, "other"));
  other->Handle(Define(writer_));
  const auto opened = Answers(*other);
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_NE(opened[0].opened().trial_id(), first.trial_id());

  stream->Handle(Send(writer_, 1));
  Answers(*stream);
  for (const pb::StreamChunksRequest& message : {Open(writer_, "other"), [&] {
                                                   auto by_number = Open(writer_, "");
                                                   by_number.mutable_open()->set_trial_id(7);
                                                   return by_number;
                                                 }()}) {
    stream->Handle(message);
    const auto answers = Answers(*stream);
    ASSERT_EQ(answers.size(), 1U);
    ASSERT_TRUE(answers[0].has_refused()) << answers[0].ShortDebugString();
    EXPECT_EQ(answers[0].refused().code(), static_cast<int>(absl::StatusCode::kAlreadyExists));
    EXPECT_EQ(answers[0].refused().reason(), "WRITER_IN_OTHER_TRIAL");
    EXPECT_EQ(answers[0].refused().message(),
              "open.writer is open on this stream in another trial, and messages name the writer"
              " alone; close it first, or use another stream");
    EXPECT_FALSE(answers[0].refused().terminal());
  }

  // Neither is harmed.
  stream->Handle(Send(writer_, 2));
  other->Handle(Send(writer_, 1));
  EXPECT_EQ(Answers(*stream).at(0).ack().committed_sequence(), 2U);
  EXPECT_EQ(Answers(*other).at(0).ack().committed_sequence(), 1U);
  EXPECT_EQ(heads_.UnfoldedSampleCount(static_cast<TrialId>(first.trial_id())), 4);
  EXPECT_EQ(heads_.UnfoldedSampleCount(static_cast<TrialId>(opened[0].opened().trial_id())), 2);

  // By its number it is the same trial; and once closed, the writer may go where it likes.
  auto again = Open(writer_, "");
  again.mutable_open()->set_trial_id(first.trial_id());
  stream->Handle(again);
  EXPECT_EQ(Answers(*stream).at(0).opened().committed_sequence(), 2U);
  stream->Handle(Close(writer_, 2));
  EXPECT_TRUE(Answers(*stream).at(0).ack().closed());
  stream->Handle(Open(writer_, "third"));
  EXPECT_TRUE(Answers(*stream).at(0).has_opened());
  other->Finish();
  stream->Finish();
}

TEST_F(IngestStreamLimitsTest, ClosedWritersGiveUpTheirPlaces) {
  auto stream = NewStream();
  std::vector<Uuid> writers;
  for (int i = 0; i < kWritersPerStreamMax; ++i) {
    writers.push_back(Uuid::Random());
    stream->Handle(Open(writers.back()));
    ASSERT_TRUE(Answers(*stream).at(0).has_opened()) << i;
  }
  stream->Handle(Open(writer_));
  const auto refused = Answers(*stream);
  ASSERT_TRUE(refused.at(0).has_refused());
  EXPECT_EQ(refused[0].refused().reason(), "WRITERS_PER_STREAM");
  EXPECT_EQ(refused[0].refused().message(),
            "the stream holds 256 writers, which is the limit; use another stream");

  stream->Handle(Close(writers[7], 0));
  EXPECT_TRUE(Answers(*stream).at(0).ack().closed());
  stream->Handle(Open(writer_));
  EXPECT_TRUE(Answers(*stream).at(0).has_opened()) << "there is one place now";
  stream->Handle(Open(Uuid::Random()));
  EXPECT_EQ(Answers(*stream).at(0).refused().reason(), "WRITERS_PER_STREAM");
  EXPECT_EQ(registry_.open_count(), static_cast<std::size_t>(kWritersPerStreamMax));
  stream->Finish();
}

// A machine's stream may live for months: what was refused on it must not fill it.
TEST_F(IngestStreamLimitsTest, RefusedWritersGiveUpTheirPlaces) {
  auto stream = NewStream();
  TrialId trial_id{};
  for (int i = 0; i < kWritersPerStreamMax; ++i) {
    stream->Handle(Open(Uuid::Random()));
    const auto answers = Answers(*stream);
    ASSERT_TRUE(answers.at(0).has_opened()) << i;
    trial_id = TrialId{answers[0].opened().trial_id()};
  }
  stream->RefuseTrial(trial_id, {absl::StatusCode::kFailedPrecondition, "TRIAL_ARCHIVED", "why"});
  EXPECT_EQ(Answers(*stream).size(), static_cast<std::size_t>(kWritersPerStreamMax));
  stream->Handle(Open(writer_));
  EXPECT_TRUE(Answers(*stream).at(0).has_opened());
  stream->Finish();
}

TEST_F(IngestStreamLimitsTest, ManyBadDefinitionsAreOneAnswer) {
  auto stream = NewStream();
  Begin(*stream, writer_);
  // Each says something else of ref 1: nobody reads the answers meanwhile, as in a unary call.
  pb::StreamChunksRequest conflicts;
  conflicts.mutable_definitions()->set_writer(writer_.ToBytes());
  constexpr int kCount = 3000;
  for (int i = 0; i < kCount; ++i) {
    *conflicts.mutable_definitions()->add_definitions() =
        Define(writer_).definitions().definitions(0);
    conflicts.mutable_definitions()->mutable_definitions(i)->set_name(absl::StrCat("other", i));
  }
  stream->Handle(conflicts);
  const auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(answers[0].refused().reason(), "REF_REDEFINED");
  EXPECT_NE(answers[0].refused().message().find("; and 2999 more of the message"),
            std::string::npos)
      << answers[0].refused().message();
  stream->Handle(Send(writer_, 1));
  EXPECT_EQ(Answers(*stream).at(0).ack().committed_sequence(), 1U);
  stream->Finish();
}

pb::StreamChunksRequest DefineMany(const Uuid& writer, int count) {
  pb::StreamChunksRequest message;
  message.mutable_definitions()->set_writer(writer.ToBytes());
  for (int i = 0; i < count; ++i) {
    pb::Definition& definition = *message.mutable_definitions()->add_definitions();
    definition.set_ref(static_cast<std::uint32_t>(i + 1));
    definition.set_tick_group(1);
    definition.set_metric_group("gpu");
    definition.set_name(absl::StrCat("s", i));
    definition.set_kind(pb::SERIES_KIND_GAUGE);
  }
  return message;
}

// A flood of new series must not cost the store a call for each of them.
TEST_F(IngestStreamLimitsTest, SeriesBeyondATrialsLimitAreRefusedWithOneCallAndTheOthersGoOn) {
  store_.set_series_max(3);
  auto stream = NewStream();
  stream->Handle(Open(writer_));
  const int before = store_.series_calls();
  stream->Handle(DefineMany(writer_, 1000));
  EXPECT_EQ(store_.series_calls(), before + 1);
  const auto answers = Answers(*stream);
  ASSERT_EQ(answers.size(), 2U);
  ASSERT_TRUE(answers[1].has_refused()) << answers[1].ShortDebugString();
  EXPECT_EQ(answers[1].refused().code(), static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(answers[1].refused().reason(), "SERIES_LIMIT");
  EXPECT_EQ(answers[1].refused().message(),
            absl::StrCat("ref 4 (gpu s3): trial ", answers[0].opened().trial_id(), " has its ",
                         kSeriesPerTrialMax, " series, the limit; and 996 more of the message"));
  EXPECT_FALSE(answers[1].refused().terminal());
  stream->Handle(Send(writer_, 1, 3));
  EXPECT_EQ(Answers(*stream).at(0).ack().committed_sequence(), 1U);
  EXPECT_EQ(heads_.UnfoldedSampleCount(static_cast<TrialId>(answers[0].opened().trial_id())), 2);
  stream->Finish();
}

// The store may have a flood rest between its turns: a master that stops waits for one of them alone.
TEST_F(IngestStreamLimitsTest, AStreamThatEndsAsksForNoMoreOfItsSeries) {
  auto stream = NewStream();
  stream->Handle(Open(writer_));
  const auto trial_id = static_cast<TrialId>(Answers(*stream).at(0).opened().trial_id());
  store_.OnNextSeries([&] { stream->End(absl::UnavailableError("the master stops")); });
  stream->Handle(DefineMany(writer_, 2500));
  EXPECT_EQ(store_.series_count(trial_id), 1000);
  stream->Finish();
}

TEST_F(IngestStreamLimitsTest, AStoreThatIsBusyWithSeriesStopsNobodysCredit) {
  auto stream = NewStream();
  stream->Handle(Open(writer_));
  store_.KeepSeriesBusy(2);
  stream->Handle(Define(writer_));
  EXPECT_TRUE(state_.Get().database_up);
  stream->Handle(Send(writer_, 1));
  EXPECT_EQ(Answers(*stream).back().ack().committed_sequence(), 1U);
  stream->Finish();
}

TEST_F(IngestStreamLimitsTest, WhoTakesNoAnswersIsEndedAfterAWhile) {
  auto made =
      IngestStream::Create(context_, [] {}, nullptr, {.answers_patience = absl::Milliseconds(50)});
  ASSERT_TRUE(made.ok());
  const std::shared_ptr<IngestStream> stream = *std::move(made);
  for (int i = 0; i < 2000 && stream->end_status().ok(); ++i) stream->Handle({});
  EXPECT_TRUE(absl::IsResourceExhausted(stream->end_status())) << stream->end_status();
  int held_count = 0;
  EXPECT_FALSE(stream->Admit({}, 1 << 20, [&] { ++held_count; }));
  EXPECT_LE(held_count, 1);
  stream->Finish();
}

// Else one client would hold whoever opens its writers elsewhere, and the committer.
TEST_F(IngestStreamLimitsTest, WhoTakesNoAnswersHoldsUpNobodyWhoFencesIt) {
  auto stream = NewStream();
  stream->Handle(Open(writer_));
  for (int i = 0; i < 1023; ++i) stream->Handle({});
  ASSERT_FALSE(stream->board().WaitForRoom(SteadyTime::InfinitePast()));
  absl::Notification opened;
  auto other = NewStream();
  std::thread opens([&] {
    other->Handle(Open(writer_));
    opened.Notify();
  });
  EXPECT_TRUE(opened.WaitForNotificationWithTimeout(absl::Seconds(5)));
  stream->End(absl::CancelledError("the test is over"));
  opens.join();
  stream->Finish();
  other->Finish();
}

TEST_F(IngestStreamLimitsTest, WritersOfAStreamThatIsNotReadCountAsHeardOf) {
  auto made = IngestStream::Create(context_, [] {}, nullptr, {.say_each = absl::ZeroDuration()});
  ASSERT_TRUE(made.ok());
  (*made)->Handle(Open(writer_));
  ASSERT_EQ(Answers(**made).size(), 1U);
  (*made)->NoteWaiting();
  const auto answers = Answers(**made);
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers[0].has_ack());
  (*made)->Finish();
}

// Four bytes each on the wire, over a hundred here: credit, the queue's room and a stream's bound go by what they take.
TEST_F(IngestStreamLimitsTest, LossesCountAsWhatTheyTake) {
  const auto stream = NewStream();
  Begin(*stream, writer_);
  store_.set_block_commits(true);
  stream->Handle(Send(writer_, 1));
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(10);
  while (queue_.bytes() > 0 && !deadline.HasPassed()) absl::SleepFor(absl::Milliseconds(1));
  ASSERT_EQ(queue_.bytes(), 0) << "under way";
  pb::ChunkBody body;
  for (int i = 0; i < kChunkLossesMax; ++i) {
    body.add_losses()->set_cause(pb::GAP_CAUSE_RING_FULL);
  }
  body.mutable_losses(0)->set_reason(std::string(200, 'r'));
  pb::StreamChunksRequest message;
  *message.mutable_chunk() = MakeChunk(2, body);
  message.mutable_chunk()->set_writer(writer_.ToBytes());
  stream->Handle(message);
  EXPECT_GE(queue_.bytes(), static_cast<std::int64_t>(kChunkLossesMax * sizeof(Gap) + 200));
  store_.set_block_commits(false);
  EXPECT_EQ(Answers(*stream).back().ack().committed_sequence(), 2U);
  stream->Finish();
}

}  // namespace
}  // namespace stepwell
