// What a stream pays for messages that nobody takes, or that store nothing: as much as for others, and once. By a clock that
// stands still: what is used up stays so.
#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "server/rate_limits.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

constexpr char kAddress[] = "10.0.0.1";
// Of fields that are not known here, so that its own size is nothing beside.
constexpr std::size_t kPaddingBytes = 600'000;
constexpr int kPaddingField = 1000;

void Pad(google::protobuf::Message& message) {
  message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(
      kPaddingField, std::string(kPaddingBytes, 'x'));
}

struct Row {
  const char* name;
  std::function<void(pb::StreamChunksRequest&, const std::string& writer)> make;
  // What it is told; empty: nothing.
  std::string reason;
};

class IngestStreamVainTest : public IngestStreamTest {
 protected:
  IngestStreamVainTest() : paced_(context_) { paced_.rates = &plenty_; }

  std::shared_ptr<IngestStream> NewPacedStream() {
    auto stream = IngestStream::Create(paced_, [] {}, nullptr, {.address = kAddress});
    EXPECT_TRUE(stream.ok()) << stream.status();
    return *stream;
  }
  // Of which a message and a half may come.
  void AllowOneAndAHalf(std::size_t bytes) {
    RateLimits::Options options;
    options.per_second[static_cast<std::size_t>(RateKind::kIngestBytes)] =
        0.15 * static_cast<double>(bytes);
    limits_.emplace(options, still_);
    paced_.rates = &*limits_;
  }
  bool IsLeft() {
    return limits_->TryTake(RateKind::kIngestBytes, {kAddress, nullptr}, 0).wait ==
           absl::ZeroDuration();
  }
  // Fails where it would wait.
  static void AtOnce(IngestStream& stream, const std::function<void()>& act) {
    absl::Notification done;
    std::thread watch([&] {
      if (done.WaitForNotificationWithTimeout(absl::Seconds(5))) return;
      stream.End(absl::CancelledError("it is held"));
    });
    act();
    done.Notify();
    watch.join();
    EXPECT_TRUE(stream.end_status().ok()) << stream.end_status();
  }
  // One is taken and leaves half of one, one more is taken, and the third waits: it takes nothing of a stream that ends meanwhile.
  void ExpectPaysOnceAndWaits(IngestStream& stream, const std::string& reason,
                              const std::function<void()>& handle) {
    AtOnce(stream, handle);
    EXPECT_TRUE(IsLeft()) << "it paid twice";
    AtOnce(stream, handle);
    EXPECT_FALSE(IsLeft()) << "it paid nothing";
    ExpectAnswers(stream, reason);
    stream.End(absl::CancelledError("the client has gone"));
    handle();
    EXPECT_FALSE(IsLeft());
    still_.Advance(absl::Seconds(4));
    EXPECT_TRUE(IsLeft()) << "it did not wait";
  }
  void ExpectAnswers(IngestStream& stream, const std::string& reason) {
    const auto answers = Answers(stream);
    if (reason.empty()) return;
    ASSERT_EQ(answers.size(), 2U);
    for (const auto& answer : answers) EXPECT_EQ(answer.refused().reason(), reason);
  }

  FakeClock still_;
  RateLimits plenty_{{}, still_};
  std::optional<RateLimits> limits_;
  IngestContext paced_;
};

TEST_F(IngestStreamVainTest, WhatNobodyTakesPaysOnceAndWaitsAsWhatIsTaken) {
  const std::string closed = Uuid::Random().ToBytes();
  const std::vector<Row> rows = {
      {"chunk of a writer that is not open",
       [&](auto& message, const auto&) { message.mutable_chunk()->set_writer(closed); },
       "NOT_OPEN"},
      {"chunk of no writer", [](auto& message, const auto&) { message.mutable_chunk(); },
       "NOT_OPEN"},
      {"gap of a writer that is not open",
       [&](auto& message, const auto&) { message.mutable_gap()->set_writer(closed); }, "NOT_OPEN"},
      {"definitions of a writer that is not open",
       [&](auto& message, const auto&) { message.mutable_definitions()->set_writer(closed); },
       "NOT_OPEN"},
      {"heartbeat of a writer that is not open",
       [&](auto& message, const auto&) { message.mutable_heartbeat()->set_writer(closed); },
       "NOT_OPEN"},
      {"close of a writer that is not open",
       [&](auto& message, const auto&) { message.mutable_close()->set_writer(closed); },
       "NOT_OPEN"},
      {"capture report of a writer that is not open",
       [&](auto& message, const auto&) { message.mutable_capture_report()->set_writer(closed); },
       "NOT_OPEN"},
      {"credential of a writer that is not open",
       [&](auto& message, const auto&) { message.mutable_credential()->set_writer(closed); },
       "NOT_OPEN"},
      {"open without a trial",
       [&](auto& message, const auto&) { message.mutable_open()->set_writer(closed); },
       "TRIAL_SELECTOR"},
      {"sequence 0",
       [](auto& message, const auto& writer) {
         message = Send(*Uuid::FromBytes(writer), 1);
         message.mutable_chunk()->set_sequence(0);
       },
       "SEQUENCE_RANGE"},
      {"wrong checksum",
       [](auto& message, const auto& writer) {
         message = Send(*Uuid::FromBytes(writer), 1);
         message.mutable_chunk()->set_crc32c(message.chunk().crc32c() + 1);
       },
       "CHECKSUM"},
      {"sequence beyond the next",
       [](auto& message, const auto& writer) { message = Send(*Uuid::FromBytes(writer), 9); },
       "SEQUENCE_HOLE"},
      {"gap that ends before it begins",
       [](auto& message, const auto& writer) {
         message.mutable_gap()->set_writer(writer);
         message.mutable_gap()->set_first_sequence(2);
         message.mutable_gap()->set_last_sequence(1);
       },
       "SEQUENCE_RANGE"},
      {"a kind that is not known here", [](auto& message, const auto&) { Pad(message); },
       "MESSAGE_UNKNOWN"},
      // Beside what nobody takes: for comparison.
      {"definitions that are known",
       [](auto& message, const auto& writer) { message = Define(*Uuid::FromBytes(writer)); }, ""},
      {"a chunk that comes again",
       [](auto& message, const auto& writer) { message = Send(*Uuid::FromBytes(writer), 1); }, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    paced_.rates = &plenty_;
    const auto stream = NewPacedStream();
    const Uuid writer = Uuid::Random();
    Begin(*stream, writer);
    pb::StreamChunksRequest message;
    row.make(message, writer.ToBytes());
    if (message.message_case() != pb::StreamChunksRequest::MESSAGE_NOT_SET) {
      const auto* field = message.GetDescriptor()->FindFieldByNumber(message.message_case());
      Pad(*message.GetReflection()->MutableMessage(&message, field));
    }
    AllowOneAndAHalf(message.ByteSizeLong());
    ExpectPaysOnceAndWaits(*stream, row.reason, [&] { stream->Handle(message); });
    stream->Finish();
  }
}

TEST_F(IngestStreamVainTest, WhatIsNoMessagePaysOnceAndWaits) {
  for (const bool is_open : {false, true}) {
    SCOPED_TRACE(is_open);
    paced_.rates = &plenty_;
    const auto stream = NewPacedStream();
    const Uuid writer = Uuid::Random();
    Begin(*stream, writer);
    AllowOneAndAHalf(kPaddingBytes);
    ExpectPaysOnceAndWaits(*stream, "MALFORMED", [&] {
      stream->HandleMalformed(is_open ? writer.ToBytes() : "", Invalid("MALFORMED", "no message"),
                              kPaddingBytes);
    });
    stream->Finish();
  }
}

TEST_F(IngestStreamVainTest, EmptyMessagesPayForTheirFrames) {
  const auto stream = NewPacedStream();
  AllowOneAndAHalf(5);
  ExpectPaysOnceAndWaits(*stream, "MESSAGE_UNKNOWN",
                         [&] { stream->Handle(pb::StreamChunksRequest()); });
  stream->Finish();
}

// Whose debts delay what it says of its writers is late with what they did.
TEST_F(IngestStreamVainTest, HeartbeatsAndClosesOfWritersThatAreOpenWaitForNoDebt) {
  const auto stream = NewPacedStream();
  Begin(*stream, writer_);
  plenty_.Spend(RateKind::kIngestBytes, {kAddress, nullptr}, 1e12);
  pb::StreamChunksRequest heartbeat;
  heartbeat.mutable_heartbeat()->set_writer(writer_.ToBytes());
  AtOnce(*stream, [&] {
    for (int i = 0; i < 1000; ++i) stream->Handle(heartbeat);
    stream->Handle(Open(writer_));
    stream->Handle(Close(writer_, 0));
  });
  const auto answers = Answers(*stream);
  ASSERT_FALSE(answers.empty());
  EXPECT_TRUE(answers.back().ack().closed()) << answers.back().ShortDebugString();
  EXPECT_EQ(plenty_.counts().slowed_seconds[static_cast<std::size_t>(RateKind::kIngestBytes)], 0);
  stream->Finish();
}

TEST_F(IngestStreamVainTest, MoreOfThemThanAnyClientSendsPayAndWait) {
  const std::vector<Row> rows = {
      {"heartbeat",
       [](auto& message, const auto& writer) { message.mutable_heartbeat()->set_writer(writer); },
       ""},
      {"capture report",
       [](auto& message, const auto& writer) {
         message.mutable_capture_report()->set_writer(writer);
       },
       ""},
      {"credential",
       [](auto& message, const auto& writer) { message.mutable_credential()->set_writer(writer); },
       ""},
      {"close",
       [](auto& message, const auto& writer) { message = Close(*Uuid::FromBytes(writer), 0); }, ""},
      {"open", [](auto& message, const auto& writer) { message = Open(*Uuid::FromBytes(writer)); },
       ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    paced_.rates = &plenty_;
    const auto stream = NewPacedStream();
    const Uuid writer = Uuid::Random();
    Begin(*stream, writer);
    pb::StreamChunksRequest message;
    row.make(message, writer.ToBytes());
    const auto* field = message.GetDescriptor()->FindFieldByNumber(message.message_case());
    Pad(*message.GetReflection()->MutableMessage(&message, field));
    AllowOneAndAHalf(kPaddingBytes);
    // The first alone is more than what costs nothing.
    stream->Handle(message);
    Answers(*stream);
    ExpectPaysOnceAndWaits(*stream, "", [&] { stream->Handle(message); });
    stream->Finish();
  }
}

}  // namespace
}  // namespace stepwell
