// How rates hold a stream, by a clock that stands still: what is used up stays so.
#include <gmock/gmock.h>
#include <unistd.h>

#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/rate_limits.h"
#include "server/token_text.h"
#include "tests/fakes/fake_token_store.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

constexpr char kAddress[] = "10.0.0.1";

class IngestStreamPaceTest : public IngestStreamTest {
 protected:
  IngestStreamPaceTest() : paced_(context_) { paced_.rates = &limits_; }

  std::shared_ptr<IngestStream> NewPacedStream() {
    auto stream = IngestStream::Create(paced_, [] {}, nullptr, {.address = kAddress});
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *stream;
  }
  void UseUp(RateKind kind) { limits_.Spend(kind, {kAddress, nullptr}, 1e12); }
  std::size_t WriterCount() { return store_.ReadWriters()->size(); }

  FakeClock still_;
  RateLimits limits_{{}, still_};
  IngestContext paced_;
};

TEST_F(IngestStreamPaceTest, AStreamThatEndsWhileItWaitsOpensNoWriter) {
  auto stream = NewPacedStream();
  UseUp(RateKind::kOpens);
  stream->End(absl::CancelledError("the client has gone"));
  stream->Handle(Open(writer_));
  EXPECT_EQ(WriterCount(), 0U);
  stream->Finish();
}

TEST_F(IngestStreamPaceTest, AStreamThatEndsWhileItWaitsMakesNoSeries) {
  for (const RateKind kind : {RateKind::kSeries, RateKind::kIngestBytes}) {
    auto stream = NewPacedStream();
    stream->Handle(Open(writer_));
    ASSERT_EQ(WriterCount(), 1U);
    UseUp(kind);
    stream->End(absl::CancelledError("the client has gone"));
    stream->Handle(Define(writer_));
    EXPECT_EQ(store_.series_calls(), 0);
    stream->Finish();
  }
}

TEST_F(IngestStreamPaceTest, ALargeMessageGivesItsPlaceBackBeforeItWaits) {
  for (const bool is_deaf : {true, false}) {
    SCOPED_TRACE(is_deaf);
    auto stream = NewPacedStream();
    stream->Handle(Open(writer_));
    for (int i = 0; is_deaf && i < 1023; ++i) stream->Handle({});
    if (!is_deaf) UseUp(RateKind::kIngestBytes);
    absl::Notification given_back;
    bool is_admitted = true;
    std::thread reader([&] {
      is_admitted = stream->Admit({pb::StreamChunksRequest::kChunk, true, writer_.ToBytes()},
                                  1 << 20, [&] { given_back.Notify(); });
    });
    EXPECT_TRUE(given_back.WaitForNotificationWithTimeout(absl::Seconds(5)));
    stream->End(absl::CancelledError("the test is over"));
    reader.join();
    EXPECT_FALSE(is_admitted);
    stream->Finish();
  }
}

TEST_F(IngestStreamPaceTest, OneThatWaitsForItsRateHoldsNoPlaceInTheQueue) {
  auto stream = NewPacedStream();
  Begin(*stream, writer_);
  UseUp(RateKind::kIngestSamples);
  const auto nearly_all = queue_.Hold(queue_.bytes_max() - 1, SteadyTime::Now());
  ASSERT_TRUE(nearly_all.ok());
  std::thread reader([&] {
    pb::StreamChunksRequest large;
    *large.mutable_chunk() = MakeChunk(1, MakeBody(1, std::vector<double>(10'000, 1.5)));
    large.mutable_chunk()->set_writer(writer_.ToBytes());
    stream->Handle(large);
  });
  const auto slowed = [&] {
    return limits_.counts().slowed_seconds[static_cast<std::size_t>(RateKind::kIngestSamples)];
  };
  for (int i = 0; i < 500 && slowed() == 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_GT(slowed(), 0);
  EXPECT_TRUE(queue_.Hold(1, SteadyTime::Now()).ok()) << "others wait for it";
  stream->End(absl::CancelledError("the client has gone"));
  reader.join();
  stream->Finish();
}

// By whoever archives its trial, or takes its token back, meanwhile: it was told, and what it had sent before is not stored.
TEST_F(IngestStreamPaceTest, AWriterThatIsRefusedWhileItWaitsStoresNothingMore) {
  for (const RateKind kind : {RateKind::kIngestSamples, RateKind::kIngestBytes}) {
    for (const bool is_refilled : {false, true}) {
      SCOPED_TRACE(absl::StrCat(static_cast<int>(kind), is_refilled ? " refilled" : ""));
      auto stream = NewPacedStream();
      const pb::Opened opened = Begin(*stream, writer_);
      UseUp(kind);
      absl::Notification handled;
      std::thread reader([&] {
        stream->Handle(Send(writer_, 1));
        handled.Notify();
      });
      // Once it has waited.
      const auto slowed = [&] {
        return limits_.counts().slowed_seconds[static_cast<std::size_t>(kind)];
      };
      const double before = slowed();
      for (int i = 0; i < 500 && slowed() == before; ++i) absl::SleepFor(absl::Milliseconds(10));
      EXPECT_GT(slowed(), before);
      stream->RefuseTrial(TrialId{opened.trial_id()},
                          {absl::StatusCode::kFailedPrecondition, "TRIAL_ARCHIVED", "archived"});
      if (is_refilled) still_.Advance(absl::Hours(1));
      EXPECT_TRUE(handled.WaitForNotificationWithTimeout(absl::Seconds(5))) << "it waits on";
      if (!handled.HasBeenNotified()) stream->End(absl::CancelledError("the test is over"));
      reader.join();
      const auto answers = Answers(*stream);
      ASSERT_EQ(answers.size(), 1U);
      EXPECT_EQ(answers[0].refused().reason(), "TRIAL_ARCHIVED");
      EXPECT_EQ(stats_.chunks_committed, 0U);
      stream->Finish();
      still_.Advance(absl::Hours(1));
    }
  }
}

// An agent of all users: its stream shows one token, and a writer on it one of its own.
class TwoTokensTest : public IngestStreamPaceTest {
 protected:
  TwoTokensTest() {
    std::vector<TokenRecord> living;
    for (const NewToken& token : {agents_, users_}) {
      living.push_back(
          {.id = token.id, .digest = token.digest, .name = "t", .grants = {"write:*"}});
    }
    guard_->Learn(living, still_.Monotonic());
    paced_.access = &access_;
    auto stream = IngestStream::Create(paced_, [] {}, *guard_->IdentifyToken(agents_.text),
                                       {.address = kAddress});
    EXPECT_TRUE(stream.ok()) << stream.status();
    stream_ = *stream;
    Handle(Open(writer_));
    Handle(Define(writer_));
    EXPECT_TRUE(Answers(*stream_).at(0).has_opened());
  }
  ~TwoTokensTest() override {
    stream_->Finish();
    unlink(path_.c_str());
  }

  pb::StreamChunksRequest OpenOfUser(const Uuid& writer) const {
    auto message = Open(writer, "theirs");
    message.mutable_open()->set_token(users_.text);
    return message;
  }
  void BeginUsers() {
    Handle(OpenOfUser(theirs_));
    Handle(Define(theirs_));
    EXPECT_TRUE(Answers(*stream_).at(0).has_opened());
  }
  void UseUpOf(const NewToken& token, RateKind kind) {
    limits_.Spend(kind, {"", guard_->IdentifyToken(token.text)->get()}, 1e12);
  }
  void Refill() {
    still_.Advance(absl::Hours(1));
    guard_->Confirm(still_.Monotonic());
  }
  // Less than one, so that one more may be taken and none after it.
  void LeaveOne(const NewToken& token, RateKind kind) {
    const TokenHolder* holder = guard_->IdentifyToken(token.text)->get();
    const double burst = 10 * RateLimits::Options().per_second[static_cast<std::size_t>(kind)];
    Refill();
    limits_.Spend(kind, {"", holder}, burst - 0.5);
  }
  static pb::StreamChunksRequest Show(const Uuid& writer, const std::string& token) {
    pb::StreamChunksRequest message;
    message.mutable_credential()->set_writer(writer.ToBytes());
    message.mutable_credential()->set_token(token);
    return message;
  }
  // Fails where it would wait.
  void Handle(const pb::StreamChunksRequest& message) {
    absl::Notification handled;
    std::thread watch([&] {
      if (handled.WaitForNotificationWithTimeout(absl::Seconds(5))) return;
      stream_->End(absl::CancelledError("it is held"));
    });
    stream_->Handle(message);
    handled.Notify();
    watch.join();
    EXPECT_TRUE(stream_->end_status().ok()) << stream_->end_status();
  }
  void ExpectRefusedForItsRate(const Uuid& writer, const NewToken& token, bool is_terminal) {
    const auto answers = Answers(*stream_);
    ASSERT_EQ(answers.size(), 1U);
    const pb::Refused& refused = answers[0].refused();
    EXPECT_EQ(refused.writer(), writer.ToBytes());
    EXPECT_EQ(refused.reason(), "RATE_LIMIT");
    EXPECT_EQ(refused.terminal(), is_terminal);
    EXPECT_THAT(refused.message(), ::testing::HasSubstr(absl::StrCat("the token ", token.id)));
  }
  void ExpectTaken(const Uuid& writer, std::uint64_t sequence) {
    Handle(Send(writer, sequence));
    const auto answers = Answers(*stream_);
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].ack().committed_sequence(), sequence) << answers[0].ShortDebugString();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "two-tokens-", getpid());
  const NewToken agents_ = MakeToken();
  const NewToken users_ = MakeToken();
  const Uuid theirs_ = Uuid::Random();
  FakeTokenStore tokens_;
  const std::shared_ptr<TokenGuard> guard_ = *TokenGuard::Open(path_, still_);
  const AccessControl access_{guard_.get(), tokens_, &limits_};
  std::shared_ptr<IngestStream> stream_;
};

TEST_F(TwoTokensTest, AWriterWhoseTokenIsUsedUpHoldsNobody) {
  pb::StreamChunksRequest another = Define(theirs_);
  another.mutable_definitions()->mutable_definitions(0)->set_ref(2);
  another.mutable_definitions()->mutable_definitions(0)->set_name("another");
  const struct {
    const char* name;
    RateKind kind;
    pb::StreamChunksRequest message;
  } rows[] = {
      {"bytes", RateKind::kIngestBytes, Send(theirs_, 1)},
      {"samples", RateKind::kIngestSamples, Send(theirs_, 1)},
      {"definitions", RateKind::kIngestBytes, Define(theirs_)},
      {"series", RateKind::kSeries, another},
  };
  std::uint64_t sequence = 0;
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    BeginUsers();
    UseUpOf(users_, row.kind);
    Handle(row.message);
    ExpectRefusedForItsRate(theirs_, users_, true);
    ExpectTaken(writer_, ++sequence);
    // What it sent behind that is refused, too, and no chunk is taken without its definitions.
    Handle(Send(theirs_, 2));
    ExpectRefusedForItsRate(theirs_, users_, true);
    Refill();
  }
  // It opens again, and goes on where it was.
  BeginUsers();
  ExpectTaken(theirs_, 1);
}

// By the clock that stands still: what is owed, to the millisecond.
TEST_F(TwoTokensTest, AWriterIsToldHowLongItsTokenOwes) {
  const struct {
    const char* name;
    RateKind kind;
    double seconds;  // that are owed
    pb::StreamChunksRequest message;
  } rows[] = {
      {"samples", RateKind::kIngestSamples, 20, Send(theirs_, 1)},
      {"bytes", RateKind::kIngestBytes, 0.25, Send(theirs_, 1)},
      {"opens", RateKind::kOpens, 45, OpenOfUser(Uuid::Random())},
      {"credentials", RateKind::kOpens, 3, Show(theirs_, users_.text)},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    BeginUsers();
    Refill();
    limits_.Spend(
        row.kind, {"", guard_->IdentifyToken(users_.text)->get()},
        (10 + row.seconds) * RateLimits::Options().per_second[static_cast<std::size_t>(row.kind)]);
    Handle(row.message);
    const auto answers = Answers(*stream_);
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].refused().reason(), "RATE_LIMIT");
    EXPECT_NEAR(static_cast<double>(answers[0].refused().retry_delay_ms()), 1000 * row.seconds, 2);
    Refill();
  }
}

TEST_F(TwoTokensTest, AWriterThatOpensWithATokenThatIsUsedUpComesLater) {
  UseUpOf(users_, RateKind::kOpens);
  Handle(OpenOfUser(theirs_));
  ExpectRefusedForItsRate(theirs_, users_, false);
  ExpectTaken(writer_, 1);
  Refill();
  BeginUsers();
  ExpectTaken(theirs_, 1);
}

// What is refused costs the stream's own: whose token it shows cannot be asked to pay, and is nobody's perhaps.
TEST_F(TwoTokensTest, TokensThatAreRefusedAreLookedAtAsOftenAsTheStreamMayOpen) {
  auto wrong = Open(Uuid::Random());
  wrong.mutable_open()->set_token(MakeToken().text);
  auto credential = Show(theirs_, MakeToken().text);
  BeginUsers();
  for (const auto& message : {wrong, credential}) {
    SCOPED_TRACE(message.ShortDebugString());
    LeaveOne(agents_, RateKind::kOpens);
    Handle(message);
    auto answers = Answers(*stream_);
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].refused().reason(), "TOKEN_REFUSED");
    EXPECT_EQ(answers[0].refused().terminal(), message.has_open());
    Handle(message);
    ExpectRefusedForItsRate(
        *Uuid::FromBytes(message.has_open() ? wrong.open().writer() : theirs_.ToBytes()), agents_,
        false);
    Refill();
  }
  ExpectTaken(theirs_, 1);
}

TEST_F(TwoTokensTest, ACredentialBeyondTheLimitIsRefusedAndItsSessionGoesOn) {
  BeginUsers();
  for (const NewToken& token : {agents_, users_}) {
    SCOPED_TRACE(token.id);
    UseUpOf(token, RateKind::kOpens);
    Handle(Show(theirs_, users_.text));
    ExpectRefusedForItsRate(theirs_, token, false);
    Refill();
  }
  ExpectTaken(theirs_, 1);
  Handle(Show(theirs_, users_.text));
  EXPECT_TRUE(Answers(*stream_).empty());
  ExpectTaken(theirs_, 2);
}

// No client of ours sends that: whoever does is not freed of his own debts by another's writer on his stream. But what was
// under way as a writer was refused, whose client could not know, costs nothing, up to what a credit is.
TEST_F(TwoTokensTest, WhatNoSessionPaysForHoldsItsStreamAndWhatWasUnderWayDoesNot) {
  BeginUsers();
  UseUpOf(users_, RateKind::kIngestBytes);
  Handle(Send(theirs_, 1));
  ExpectRefusedForItsRate(theirs_, users_, true);
  UseUpOf(agents_, RateKind::kIngestBytes);
  pb::StreamChunksRequest large = Send(theirs_, 2);
  large.mutable_chunk()->set_body(std::string(9 << 20, 'x'));
  Handle(large);
  ExpectRefusedForItsRate(theirs_, users_, true);
  const struct {
    const char* name;
    Uuid writer;
    const char* reason;
  } rows[] = {{"more than was under way", theirs_, "RATE_LIMIT"},
              {"a writer that was never open", Uuid::Random(), "NOT_OPEN"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.name);
    UseUpOf(agents_, RateKind::kIngestBytes);
    const auto slowed = [&] {
      return limits_.counts().slowed_seconds[static_cast<std::size_t>(RateKind::kIngestBytes)];
    };
    const double before = slowed();
    absl::Notification handled;
    std::thread reader([&] {
      stream_->Handle(Send(row.writer, 3));
      handled.Notify();
    });
    for (int i = 0; i < 500 && slowed() == before; ++i) absl::SleepFor(absl::Milliseconds(10));
    EXPECT_GT(slowed(), before);
    Refill();
    EXPECT_TRUE(handled.WaitForNotificationWithTimeout(absl::Seconds(5))) << "it is held on";
    if (!handled.HasBeenNotified()) stream_->End(absl::CancelledError("the test is over"));
    reader.join();
    const auto answers = Answers(*stream_);
    ASSERT_EQ(answers.size(), 1U);
    EXPECT_EQ(answers[0].refused().reason(), row.reason);
  }
  ExpectTaken(writer_, 1);
}

TEST_F(TwoTokensTest, TheStreamsOwnTokenHoldsNoWriterOfAnother) {
  BeginUsers();
  UseUpOf(agents_, RateKind::kIngestSamples);
  Handle(Send(writer_, 1));
  ExpectRefusedForItsRate(writer_, agents_, true);
  ExpectTaken(theirs_, 1);
}

}  // namespace
}  // namespace stepwell
