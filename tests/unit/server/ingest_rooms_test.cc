// Invariant: whoever waits for its own client, its own rate or its own series holds up nobody else's chunks: all over gRPC,
// with rooms that one message of each fills.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/worker.h"
#include "server/ingest_service.h"
#include "server/rate_limits.h"
#include "stepwell/v1/ingest.grpc.pb.h"
#include "tests/unit/server/ingest_stream_fixture.h"

namespace stepwell {
namespace {

constexpr std::size_t kLargeBytes = 300 << 10;
constexpr absl::Duration kSoon = absl::Seconds(5);

// One stream of a client that reads when it is told to.
class TestStream {
 public:
  explicit TestStream(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(pb::IngestService::NewStub(channel)), call_(stub_->StreamChunks(&context_)) {}
  ~TestStream() {
    context_.TryCancel();
    sender_.Join();
    call_->Finish().IgnoreError();
  }
  bool Send(const pb::StreamChunksRequest& message) { return call_->Write(message); }
  // By another thread: a message that is not read holds who sends it.
  void SendAside(std::vector<pb::StreamChunksRequest> messages) {
    sender_ = Worker("sender", [this, messages = std::move(messages)] {
      for (const auto& message : messages) {
        if (!call_->Write(message)) return;
      }
    });
  }
  bool Read(pb::StreamChunksResponse& answer) { return call_->Read(&answer); }
  // Up to the Ack of `chunk`; false where it does not come soon, after which nothing does.
  bool SendAndAwaitAck(const pb::StreamChunksRequest& chunk) {
    const std::uint64_t sequence = chunk.chunk().sequence();
    absl::Notification came;
    Worker watch("watch", [&] {
      if (!came.WaitForNotificationWithTimeout(kSoon)) context_.TryCancel();
    });
    pb::StreamChunksResponse answer;
    bool is_acked = false;
    // It is held where the stream is not read.
    const bool is_sent = call_->Write(chunk);
    while (is_sent && !is_acked && call_->Read(&answer)) {
      is_acked = answer.has_ack() && answer.ack().committed_sequence() >= sequence;
    }
    came.Notify();
    watch.Join();
    return is_acked;
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<pb::IngestService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<pb::StreamChunksRequest, pb::StreamChunksResponse>>
      call_;
  Worker sender_;
};

class IngestRoomsTest : public IngestStreamTest {
 protected:
  IngestRoomsTest() : limited_(context_) {
    limited_.rates = &limits_;
    service_ = std::make_unique<IngestService>(IngestService::Options(), limited_, rooms_);
    grpc::ServerBuilder builder;
    builder.SetMaxReceiveMessageSize(8 << 20);
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
  }
  ~IngestRoomsTest() override {
    let_go_.Notify();
    server_->Shutdown(std::chrono::system_clock::now());
  }

  // From 127.0.0.1, and from nowhere: without a rate.
  std::shared_ptr<grpc::Channel> Outside() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // What it does not read stays with the server: a few answers are on their way.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    arguments.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1 << 10);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_),
                                     grpc::InsecureChannelCredentials(), arguments);
  }
  std::shared_ptr<grpc::Channel> Inside() { return server_->InProcessChannel({}); }

  static pb::StreamChunksRequest Large(const Uuid& writer, std::uint64_t sequence) {
    pb::ChunkBody body = MakeBody(1, {1, 2});
    body.GetReflection()->MutableUnknownFields(&body)->AddLengthDelimited(
        1000, std::string(kLargeBytes, 'p'));
    pb::StreamChunksRequest message;
    *message.mutable_chunk() = MakeChunk(sequence, body);
    message.mutable_chunk()->set_writer(writer.ToBytes());
    return message;
  }
  static pb::StreamChunksRequest LargeDefinitions(const Uuid& writer) {
    pb::StreamChunksRequest message = Define(writer);
    const pb::Definition one = message.definitions().definitions(0);
    for (std::uint32_t ref = 2; ref < 300; ++ref) {
      pb::Definition& next = *message.mutable_definitions()->add_definitions();
      next = one;
      next.set_ref(ref);
      next.set_name(absl::StrCat("series_", ref));
      (*next.mutable_labels())["long"] = std::string(1000, 'x');
    }
    return message;
  }
  // The store takes no definitions from the next ones on until the test is over.
  void BlockSeries() {
    store_.OnNextSeries([this] {
      is_asked_.Notify();
      let_go_.WaitForNotification();
    });
  }
  template <typename Ready>
  static bool AwaitFor(absl::Duration patience, const Ready& ready) {
    const SteadyTime deadline = SteadyTime::Now() + patience;
    while (!ready() && !deadline.HasPassed()) absl::SleepFor(absl::Microseconds(200));
    return ready();
  }

  // Of somebody else.
  class Other {
   public:
    explicit Other(IngestRoomsTest& test) : stream_(test.Inside()) {
      EXPECT_TRUE(stream_.Send(Open(writer_, "other")));
      EXPECT_TRUE(stream_.Send(Define(writer_)));
    }
    // It is read on behind a large one: the first of them comes unasked.
    bool Takes() { return stream_.SendAndAwaitAck(Large(writer_, ++sequence_)); }

   private:
    const Uuid writer_ = Uuid::Random();
    TestStream stream_;
    std::uint64_t sequence_ = 0;
  };

  // Whether some large message is in a room that chunks lie in, or in that of those that wait for themselves.
  bool AnyLiesInARoom() const {
    return rooms_.held.bytes() + rooms_.read_chunks.bytes() + rooms_.chunks.bytes() >=
           static_cast<std::int64_t>(kLargeBytes);
  }

  FakeClock still_;
  RateLimits limits_{{}, still_};
  IngestContext limited_;
  // One large chunk fills that in which it is read, and that in which it is worked on.
  static constexpr std::int64_t kOneBytes = kLargeBytes + (8 << 10);
  MessageRooms rooms_{2 * kOneBytes, 4 * kOneBytes, 64 << 10};
  absl::Notification is_asked_;
  absl::Notification let_go_;
  std::unique_ptr<IngestService> service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(IngestRoomsTest, AClientThatTakesNoAnswersHoldsUpNobody) {
  Other other(*this);
  TestStream deaf(Outside());
  // More refusals than the board and the way to the client take, and large messages behind them.
  constexpr int kSmallCount = 2200;
  constexpr int kLargeCount = 24;
  std::vector<pb::StreamChunksRequest> messages(kSmallCount);
  messages.resize(kSmallCount + kLargeCount, Large(Uuid::Random(), 1));
  deaf.SendAside(std::move(messages));
  pb::StreamChunksResponse answer;
  int read_count = 0;
  for (; !AnyLiesInARoom(); ++read_count) {
    ASSERT_LT(read_count, kSmallCount) << "all small ones are answered, and no large one waits";
    ASSERT_TRUE(deaf.Read(answer));
    EXPECT_TRUE(answer.has_refused());
    AwaitFor(absl::Milliseconds(2), [&] { return AnyLiesInARoom(); });
  }
  // Small ones that were read with the first large one are before it. Each answer that is taken lets one go on; then the next
  // large one waits, which was read where chunks are.
  constexpr int kReadAtOnce = 64;
  for (int i = 0; i < kReadAtOnce + kLargeCount / 2; ++i) {
    ASSERT_TRUE(deaf.Read(answer));
    EXPECT_TRUE(answer.has_refused());
    ASSERT_TRUE(AwaitFor(kSoon, [&] { return AnyLiesInARoom(); }));
    for (int again = 0; again < 3; ++again) ASSERT_TRUE(other.Takes()) << "after " << i;
  }
}

TEST_F(IngestRoomsTest, StreamsThatWaitForTheirRateHoldUpNobody) {
  const auto slowed_seconds = [&] {
    return limits_.counts().slowed_seconds[static_cast<std::size_t>(RateKind::kIngestBytes)];
  };
  // One more large message of 127.0.0.1 goes on, and owes what it takes.
  const double burst = 10 * RateLimits::Options().per_second[0];
  limits_.Spend(RateKind::kIngestBytes, {"127.0.0.1", nullptr}, burst - kLargeBytes / 3.0);
  const Uuid writer = Uuid::Random();
  TestStream slowed(Outside());
  ASSERT_TRUE(slowed.Send(Open(writer)));
  // What comes behind one that did not wait is read where chunks are, and waits then.
  slowed.SendAside({Large(writer, 1), Large(writer, 2), Large(writer, 3)});
  ASSERT_TRUE(AwaitFor(kSoon, [&] { return slowed_seconds() > 0; }));
  Other other(*this);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(other.Takes()) << i;
  // Those of others, whose first one waits as well.
  std::vector<std::unique_ptr<TestStream>> more;
  for (int i = 0; i < 5; ++i) {
    const Uuid another = Uuid::Random();
    more.push_back(std::make_unique<TestStream>(Outside()));
    ASSERT_TRUE(more.back()->Send(Open(another)));
    more.back()->SendAside({Large(another, 1), Large(another, 2)});
  }
  const double before = slowed_seconds();
  ASSERT_TRUE(AwaitFor(kSoon, [&] { return slowed_seconds() > before + 3; }));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(other.Takes()) << i;
}

TEST_F(IngestRoomsTest, DefinitionsThatWaitForTheDatabaseHoldUpNoChunk) {
  BlockSeries();
  std::vector<std::unique_ptr<TestStream>> defining;
  for (int i = 0; i < 8; ++i) {
    const Uuid writer = Uuid::Random();
    defining.push_back(std::make_unique<TestStream>(Outside()));
    ASSERT_TRUE(defining.back()->Send(Open(writer)));
    defining.back()->SendAside({LargeDefinitions(writer), LargeDefinitions(writer)});
  }
  is_asked_.WaitForNotification();
  Other other(*this);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(other.Takes()) << i;
}

TEST_F(IngestRoomsTest, AUnaryCallThatDefinesHoldsUpNoChunk) {
  BlockSeries();
  const auto stub = pb::IngestService::NewStub(Outside());
  pb::WriteChunksRequest request;
  *request.add_messages() = Open(writer_);
  *request.add_messages() = LargeDefinitions(writer_);
  grpc::ClientContext context;
  pb::WriteChunksResponse response;
  Worker unary("unary", [&] { stub->WriteChunks(&context, request, &response).IgnoreError(); });
  const auto cancel = absl::MakeCleanup([&] { context.TryCancel(); });
  is_asked_.WaitForNotification();
  Other other(*this);
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(other.Takes()) << i;
}

}  // namespace
}  // namespace stepwell
