// What the master's refusals mean for one writer: which of them send anything again.
#include "client/agent/outbound_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"

namespace stepwell::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OutboundWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-outbound-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    Spool::Options options;
    options.writer = Uuid::Random();
    auto spool =
        Spool::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)), options, clock_);
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    WriterIdentity identity;
    identity.trial = "t";
    writer_ = std::make_unique<OutboundWriter>(identity, AgentFace(), spool_);
    writer_->OnConnected();
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  void Restart() {
    TearDown();
    SetUp();
  }
  void AppendFrames(int count) {
    for (int i = 0; i < count; ++i) {
      const Spool::Sealed sealed{1000, {1, 1, 1}, absl::StrCat("body ", i)};
      ASSERT_TRUE(spool_->AppendFrames({&sealed, 1}, Checkpoint()).ok());
    }
  }
  void Define(std::uint32_t ref) {
    pb::Definition definition;
    definition.set_ref(ref);
    writer_->AddDefinition(definition);
  }
  // Says all there is to say, as short words.
  std::vector<std::string> Talk() {
    std::vector<std::string> said;
    while (true) {
      const bool has_next = writer_->HasNext(clock_.Monotonic());
      auto message = writer_->Next(clock_.Monotonic());
      EXPECT_EQ(has_next, message.has_value());
      if (!message) return said;
      if (message->has_open()) said.push_back("open");
      if (message->has_definitions()) said.push_back("definitions");
      if (message->has_chunk()) said.push_back(absl::StrCat(message->chunk().sequence()));
      if (message->has_close()) said.push_back("close");
    }
  }
  // But for heartbeats.
  void ExpectSilence(int seconds) {
    for (int second = 0; second < seconds; ++second) {
      clock_.Advance(absl::Seconds(1));
      ASSERT_THAT(Talk(), IsEmpty()) << "after " << second << " s";
    }
  }
  bool Open() {
    pb::StreamChunksResponse message;
    message.mutable_opened()->set_credit_bytes(1 << 20);
    return writer_->OnMessage(message, clock_.Monotonic());
  }
  // Each asks for profiling on or off, and whether to sample.
  static pb::Directive Profile(bool on) {
    pb::Directive directive;
    directive.mutable_profiling()->set_on(on);
    return directive;
  }
  static pb::Directive Sample(bool on, int shared_with) {
    pb::Directive directive;
    directive.mutable_sampling()->set_on(on);
    directive.mutable_sampling()->set_shared_with(shared_with);
    return directive;
  }
  bool OpenWith(const std::vector<pb::Directive>& directives) {
    pb::StreamChunksResponse message;
    message.mutable_opened()->set_credit_bytes(1 << 20);
    for (const pb::Directive& directive : directives) {
      *message.mutable_opened()->add_directives() = directive;
    }
    return writer_->OnMessage(message, clock_.Monotonic());
  }
  bool Direct(const pb::Directive& directive) {
    pb::StreamChunksResponse message;
    *message.mutable_directive() = directive;
    return writer_->OnMessage(message, clock_.Monotonic());
  }
  bool Ack(std::uint64_t sequence) {
    pb::StreamChunksResponse message;
    message.mutable_ack()->set_committed_sequence(sequence);
    message.mutable_ack()->set_credit_bytes(1 << 20);
    return writer_->OnMessage(message, clock_.Monotonic());
  }
  bool RefuseForGood(const std::string& reason) {
    pb::StreamChunksResponse message;
    message.mutable_refused()->set_reason(reason);
    message.mutable_refused()->set_message("why");
    message.mutable_refused()->set_terminal(true);
    return writer_->OnMessage(message, clock_.Monotonic());
  }
  bool AckClosed(std::uint64_t sequence) {
    pb::StreamChunksResponse message;
    message.mutable_ack()->set_committed_sequence(sequence);
    message.mutable_ack()->set_closed(true);
    return writer_->OnMessage(message, clock_.Monotonic());
  }
  bool Refuse(const std::string& reason, std::uint64_t expected_sequence = 0) {
    pb::StreamChunksResponse message;
    message.mutable_refused()->set_reason(reason);
    message.mutable_refused()->set_expected_sequence(expected_sequence);
    return writer_->OnMessage(message, clock_.Monotonic());
  }

  std::string path_;
  FakeClock clock_;
  std::shared_ptr<Spool> spool_;
  std::unique_ptr<OutboundWriter> writer_;
};

// On a stream of fifty, of which none has credit, each frame interval would look at all of them for nothing.
TEST_F(OutboundWriterTest, WhatDoesNotFitIsNothingToSayUntilThereIsRoom) {
  AppendFrames(3);
  ASSERT_THAT(Talk(), ElementsAre("open"));
  const auto give = [&](std::uint64_t acked, std::int64_t credit_bytes) {
    pb::StreamChunksResponse message;
    if (acked == 0) {
      message.mutable_opened()->set_credit_bytes(credit_bytes);
    } else {
      message.mutable_ack()->set_committed_sequence(acked);
      message.mutable_ack()->set_credit_bytes(credit_bytes);
    }
    ASSERT_TRUE(writer_->OnMessage(message, clock_.Monotonic()));
  };
  give(0, 1);
  const auto first = writer_->Next(clock_.Monotonic());
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->chunk().sequence(), 1u) << "one may always go";
  EXPECT_FALSE(writer_->Next(clock_.Monotonic()).has_value()) << "read, and does not fit";
  EXPECT_FALSE(writer_->HasNext(clock_.Monotonic()));
  AppendFrames(1);
  EXPECT_FALSE(writer_->HasNext(clock_.Monotonic())) << "what comes behind it does not matter";

  clock_.Advance(absl::Seconds(8));
  ASSERT_TRUE(writer_->HasNext(clock_.Monotonic()));
  EXPECT_TRUE(writer_->Next(clock_.Monotonic())->has_heartbeat()) << "it lives";
  EXPECT_FALSE(writer_->HasNext(clock_.Monotonic()));

  give(1, 0);
  EXPECT_FALSE(writer_->HasNext(clock_.Monotonic())) << "no credit at all";
  give(1, 1 << 20);
  EXPECT_THAT(Talk(), ElementsAre("2", "3", "4"));

  // A connection later it is asked for anew.
  give(4, 0);
  AppendFrames(1);
  EXPECT_FALSE(writer_->Next(clock_.Monotonic()).has_value());
  EXPECT_FALSE(writer_->HasNext(clock_.Monotonic()));
  writer_->OnDisconnected();
  writer_->OnConnected();
  EXPECT_THAT(Talk(), ElementsAre("open"));
}

class TokenWriterTest : public OutboundWriterTest {
 protected:
  void SetUp() override {
    OutboundWriterTest::SetUp();
    WriterIdentity identity;
    identity.trial = "t";
    identity.token = "its own";
    writer_ = std::make_unique<OutboundWriter>(identity, AgentFace(), spool_, token_);
    writer_->OnConnected();
  }
  // What it says next, and of a token which.
  std::string Said() {
    const bool has_next = writer_->HasNext(clock_.Monotonic());
    const auto message = writer_->Next(clock_.Monotonic());
    EXPECT_EQ(has_next, message.has_value());
    if (!message) return "nothing";
    if (message->has_open()) return "open " + message->open().token();
    if (message->has_chunk()) return absl::StrCat(message->chunk().sequence());
    return message->has_credential() ? "credential " + message->credential().token() : "other";
  }
  const std::shared_ptr<TrialToken> token_ = std::make_shared<TrialToken>();
};

TEST_F(TokenWriterTest, AnotherTokenIsShownWhileItIsOpenAndAfterARefusedOpenAtOnce) {
  EXPECT_EQ(Said(), "open its own");
  token_->Set("first");
  EXPECT_EQ(Said(), "nothing") << "it is not open yet";
  ASSERT_TRUE(Open());
  EXPECT_EQ(Said(), "credential first");
  EXPECT_EQ(Said(), "nothing");
  ASSERT_TRUE(Refuse("GRANT_MISSING"));
  EXPECT_EQ(Said(), "nothing") << "the one of before counts";
  AppendFrames(1);
  EXPECT_EQ(Said(), "1") << "and it goes on";
  ASSERT_TRUE(Refuse("TOKEN_REFUSED"));
  EXPECT_EQ(token_->TakeRejected(), "first");
  EXPECT_EQ(Said(), "nothing");
  writer_->OnConnected();
  EXPECT_EQ(Said(), "open first");
  ASSERT_TRUE(RefuseForGood("TOKEN_REFUSED"));
  EXPECT_EQ(token_->TakeRejected(), "first");
  EXPECT_EQ(Said(), "nothing");
  token_->Set("");
  EXPECT_EQ(Said(), "open its own") << "no minute is waited";
  ASSERT_TRUE(RefuseForGood("TOKEN_REFUSED"));
  EXPECT_EQ(token_->TakeRejected(), "") << "that one was not fetched";
  EXPECT_EQ(Said(), "nothing");
  token_->Set("second");
  EXPECT_EQ(Said(), "open second");
}

// The master's word for the end of the one that counted, while the next one is there, or on its way.
TEST_F(TokenWriterTest, TheEndOfTheTokenOfBeforeRejectsNotTheNextOne) {
  token_->Set("first");
  EXPECT_EQ(Said(), "open first");
  ASSERT_TRUE(Open());
  AppendFrames(2);
  EXPECT_EQ(Said(), "1");
  EXPECT_EQ(Said(), "2");
  token_->Set("second");
  EXPECT_EQ(Said(), "credential second");
  ASSERT_TRUE(RefuseForGood("TOKEN_REFUSED"));
  EXPECT_EQ(Said(), "nothing") << "answers to both chunks are under way";
  token_->Set("third");
  EXPECT_EQ(Said(), "nothing");
  clock_.Advance(absl::Milliseconds(900));
  ASSERT_TRUE(RefuseForGood("TOKEN_REFUSED"));
  ASSERT_TRUE(RefuseForGood("TOKEN_REFUSED"));
  EXPECT_EQ(Said(), "nothing");
  EXPECT_EQ(token_->TakeRejected(), "");
  clock_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(Said(), "open third");
  ASSERT_TRUE(Open());
  EXPECT_EQ(Said(), "1") << "again, for it was not acked";
  // Once more, with the same one: what that Open hears counts.
  ASSERT_TRUE(RefuseForGood("TOKEN_REFUSED"));
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Said(), "open third");
  EXPECT_EQ(token_->TakeRejected(), "");
  ASSERT_TRUE(RefuseForGood("TOKEN_REFUSED"));
  EXPECT_EQ(token_->TakeRejected(), "third");
  clock_.Advance(absl::Seconds(59));
  EXPECT_EQ(Said(), "nothing");
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Said(), "open third");
}

TEST_F(TokenWriterTest, ATokenThatTheMasterCouldNotLookAtIsShownAgainAndAllElseGoesOn) {
  EXPECT_EQ(Said(), "open its own");
  ASSERT_TRUE(Open());
  int sequence = 0;
  for (const char* reason : {"TOKEN_NOT_LOOKED_UP", "RATE_LIMIT"}) {
    SCOPED_TRACE(reason);
    token_->Set(reason);
    EXPECT_EQ(Said(), absl::StrCat("credential ", reason));
    ASSERT_TRUE(Refuse(reason));
    EXPECT_EQ(Said(), "nothing");
    AppendFrames(1);
    EXPECT_EQ(Said(), absl::StrCat(++sequence));
    clock_.Advance(absl::Seconds(1));
    EXPECT_EQ(Said(), absl::StrCat("credential ", reason));
    EXPECT_EQ(token_->TakeRejected(), "") << "nobody said that it is not good";
    EXPECT_EQ(Said(), "nothing");
  }
  token_->Set("last");
  EXPECT_EQ(Said(), "credential last");
  ASSERT_TRUE(Refuse("RATE_LIMIT"));
  writer_->RequestClose(false);
  EXPECT_EQ(Said(), "other") << "its Close";
}

// The master refuses a series, drops its samples and counts them, and takes the chunks.
// A failover has all closed writers asked again: one whose trial is archived, or whose token ended, has nothing to mend.
TEST_F(OutboundWriterTest, AClosedWriterThatIsRefusedAsItAsksAgainStaysClosed) {
  AppendFrames(1);
  writer_->RequestClose(false);
  Talk();
  ASSERT_TRUE(Open());
  Talk();
  ASSERT_TRUE(AckClosed(1));
  ASSERT_EQ(writer_->status().state, SendWindow::State::kClosed);
  for (const char* reason : {"TRIAL_ARCHIVED", "TOKEN_REFUSED"}) {
    SCOPED_TRACE(reason);
    writer_->OnMasterSeen({"another", /*behind=*/false});
    EXPECT_THAT(Talk(), ElementsAre("open"));
    ASSERT_TRUE(RefuseForGood(reason));
    const OutboundWriter::Status status = writer_->status();
    EXPECT_EQ(status.state, SendWindow::State::kClosed);
    EXPECT_EQ(status.refusal, "");
    EXPECT_TRUE(status.all_acked);
    ExpectSilence(70);
    clock_.Advance(absl::Minutes(2));
  }
}

TEST_F(OutboundWriterTest, ARefusedDefinitionSendsNothingAgainAndItsChunksAreAcked) {
  for (const char* reason : {"SERIES_CONFLICT", "UNIT", "LABEL_COUNT", "SERIES_LIMIT",
                             "WRITER_SERIES_LIMIT", "REF_REDEFINED", "A_REASON_OF_LATER"}) {
    SCOPED_TRACE(reason);
    Restart();
    Define(1);
    AppendFrames(3);
    EXPECT_THAT(Talk(), ElementsAre("open"));
    ASSERT_TRUE(Open());
    EXPECT_THAT(Talk(), ElementsAre("definitions", "1", "2", "3"));
    ASSERT_TRUE(Refuse(reason));
    EXPECT_TRUE(Ack(2));
    EXPECT_THAT(Talk(), IsEmpty());
    EXPECT_TRUE(Ack(3));
    // At once: other series of this writer wait for nothing.
    AppendFrames(1);
    EXPECT_THAT(Talk(), ElementsAre("4"));
    EXPECT_TRUE(Ack(4));
    EXPECT_TRUE(writer_->status().all_acked);
  }
}

// What had a sequence is sent again; an ack of what was sent before that is believed.
TEST_F(OutboundWriterTest, ARefusedChunkIsSentAgainAndAnAckOfItsFirstTripIsBelieved) {
  for (const char* reason : {"CHECKSUM", "TIME_RANGE", "SEQUENCE_RANGE"}) {
    SCOPED_TRACE(reason);
    Restart();
    AppendFrames(4);
    Talk();
    ASSERT_TRUE(Open());
    EXPECT_THAT(Talk(), ElementsAre("1", "2", "3", "4"));
    ASSERT_TRUE(Refuse(reason));
    // Sent before, committed, and not yet sent again.
    EXPECT_TRUE(Ack(2));
    ASSERT_TRUE(Refuse("SEQUENCE_HOLE", 3));
    clock_.Advance(absl::Seconds(1));
    EXPECT_THAT(Talk(), ElementsAre("3", "4"));
    EXPECT_TRUE(Ack(4));
    EXPECT_FALSE(Ack(5));
  }
}

// Those beside it hold, and it takes back none of them.
TEST_F(OutboundWriterTest, AgentRule05_ADirectiveOfAnUnknownKindIsPassedOver) {
  pb::Directive unknown;
  unknown.GetReflection()->MutableUnknownFields(&unknown)->AddLengthDelimited(15, "\x08\x01");
  AppendFrames(2);
  Talk();
  OpenWith({unknown, Profile(false), unknown, Sample(false, 3), unknown});
  EXPECT_TRUE(Direct(unknown));
  const OutboundWriter::Status status = writer_->status();
  ASSERT_TRUE(status.profiling.has_value());
  EXPECT_FALSE(status.profiling->on());
  EXPECT_EQ(status.shared_with, 3);
  EXPECT_THAT(Talk(), ElementsAre("1", "2"));
}

TEST_F(OutboundWriterTest, AgentRule05_ARefusedWriterIsShownToTheMasterOnceAMinute) {
  for (const char* reason : {"CLIENT_TOO_OLD", "TRIAL_NOT_FOUND"}) {
    SCOPED_TRACE(reason);
    Restart();
    AppendFrames(2);
    EXPECT_THAT(Talk(), ElementsAre("open"));
    ASSERT_TRUE(RefuseForGood(reason));
    EXPECT_EQ(writer_->status().refusal, absl::StrCat(reason, ": why"));
    for (int second = 0; second < 59; ++second) {
      clock_.Advance(absl::Seconds(1));
      AppendFrames(1);
      ASSERT_THAT(Talk(), IsEmpty()) << "after " << second << " s";
    }
    clock_.Advance(absl::Seconds(2));
    EXPECT_THAT(Talk(), ElementsAre("open"));
    ASSERT_TRUE(Open());
    EXPECT_EQ(writer_->status().refusal, "");
    EXPECT_EQ(Talk().size(), 61U) << "all of it is still there";
  }
}

// Its token's quota is used up: it is late, and not refused, whoever waits for it.
TEST_F(OutboundWriterTest, AWriterThatIsOverItsRateRestsTenSecondsAndGoesOn) {
  AppendFrames(2);
  EXPECT_THAT(Talk(), ElementsAre("open"));
  ASSERT_TRUE(Open());
  const std::vector<std::string> sent = Talk();
  EXPECT_EQ(sent.size(), 2U);
  ASSERT_TRUE(RefuseForGood("RATE_LIMIT"));
  EXPECT_NE(writer_->status().state, SendWindow::State::kRefused);
  EXPECT_EQ(writer_->status().refusal, "");
  // Of the chunks that were under way behind it.
  ASSERT_TRUE(Refuse("NOT_OPEN"));
  ASSERT_TRUE(RefuseForGood("NOT_OPEN"));
  EXPECT_NE(writer_->status().state, SendWindow::State::kRefused);
  ExpectSilence(9);
  clock_.Advance(absl::Seconds(2));
  EXPECT_THAT(Talk(), ElementsAre("open"));
  ASSERT_TRUE(Open());
  EXPECT_EQ(Talk(), sent) << "all of it is still there";
}

// A stream that is full has room again when one of the others ends: late, and not refused, whoever waits.
TEST_F(OutboundWriterTest, AWriterWithoutAPlaceOnItsStreamAsksAgainAfterTenSeconds) {
  AppendFrames(2);
  for (int round = 0; round < 3; ++round) {
    EXPECT_THAT(Talk(), ElementsAre("open")) << round;
    ASSERT_TRUE(RefuseForGood("WRITERS_PER_STREAM"));
    EXPECT_NE(writer_->status().state, SendWindow::State::kRefused);
    EXPECT_EQ(writer_->status().refusal, "");
    clock_.Advance(absl::Seconds(9));
    EXPECT_THAT(Talk(), IsEmpty());
    clock_.Advance(absl::Seconds(2));
  }
  EXPECT_THAT(Talk(), ElementsAre("open"));
  ASSERT_TRUE(Open());
  EXPECT_THAT(Talk(), ElementsAre("1", "2"));
}

// A master forgets a writer that is closed, and its word on what came behind the Close overtakes the Ack.
TEST_F(OutboundWriterTest, AHeartbeatBehindACloseThatWasTakenRefusesNobody) {
  AppendFrames(1);
  Talk();
  ASSERT_TRUE(Open());
  writer_->RequestClose(false);
  EXPECT_THAT(Talk(), ElementsAre("1", "close"));
  ASSERT_TRUE(RefuseForGood("NOT_OPEN"));
  EXPECT_NE(writer_->status().state, SendWindow::State::kRefused);
  ASSERT_TRUE(AckClosed(1));
  EXPECT_EQ(writer_->status().state, SendWindow::State::kClosed);
  ASSERT_TRUE(RefuseForGood("NOT_OPEN"));
  EXPECT_EQ(writer_->status().state, SendWindow::State::kClosed);
  EXPECT_EQ(writer_->status().refusal, "");
  clock_.Advance(absl::Minutes(5));
  EXPECT_THAT(Talk(), IsEmpty());
}

TEST_F(OutboundWriterTest, ACloseThatNobodyAcksIsToldAnewAfterAMinute) {
  AppendFrames(1);
  Talk();
  ASSERT_TRUE(Open());
  writer_->RequestClose(false);
  EXPECT_THAT(Talk(), ElementsAre("1", "close"));
  ASSERT_TRUE(RefuseForGood("NOT_OPEN"));
  ExpectSilence(59);
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(Talk(), ElementsAre("open"));
  ASSERT_TRUE(Open());
  EXPECT_THAT(Talk(), ElementsAre("1", "close"));
  clock_.Advance(absl::Seconds(7));
  EXPECT_THAT(Talk(), IsEmpty());
}

TEST_F(OutboundWriterTest, WhatIsAskedForHoldsUntilItIsAskedOtherwiseOrOpenedAnew) {
  EXPECT_FALSE(writer_->status().opened);
  Talk();
  ASSERT_TRUE(OpenWith({Profile(false), Sample(false, 3)}));
  OutboundWriter::Status status = writer_->status();
  EXPECT_TRUE(status.opened);
  EXPECT_FALSE(status.profiling->on());
  EXPECT_EQ(status.sampling_on, false);
  EXPECT_EQ(status.shared_with, 3);
  ASSERT_TRUE(Direct(Profile(true)));
  ASSERT_TRUE(Direct(Sample(true, 0)));
  status = writer_->status();
  EXPECT_TRUE(status.profiling->on());
  EXPECT_EQ(status.sampling_on, true);
  EXPECT_EQ(status.shared_with, 0);
  // What was asked for while nobody listened is in the next Opened, or is over.
  ASSERT_TRUE(Direct(Profile(false)));
  writer_->OnDisconnected();
  EXPECT_FALSE(writer_->status().profiling->on());
  writer_->OnConnected();
  Talk();
  ASSERT_TRUE(OpenWith({}));
  status = writer_->status();
  EXPECT_FALSE(status.profiling.has_value());
  EXPECT_FALSE(status.sampling_on.has_value());
}

}  // namespace
}  // namespace stepwell::agent
