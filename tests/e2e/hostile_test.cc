// Hostile input beside a healthy writer: each answered with a precise reason, nobody else harmed.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/listen_socket.h"
#include "tests/e2e/spine.h"

namespace stepwell::testing {
namespace {

std::optional<v1::Refused> WaitRefused(RawStream& stream) {
  const auto answer = stream.WaitFor([](const auto& message) { return message.has_refused(); });
  return answer ? std::optional(answer->refused()) : std::nullopt;
}

class HostileTest : public SpineTest {
 protected:
  // A healthy writer on the hostile one's own stream.
  void ExpectHealthy(RawStream& stream) {
    ++healthy_sequence_;
    ASSERT_TRUE(stream.Send(
        ChunkMessage(healthy_, healthy_sequence_, OneColumn(1, NowUs(), 1000, {1.0, 2.0}))));
    ASSERT_TRUE(stream.WaitAck(healthy_, healthy_sequence_).has_value()) << master_->LogTail();
  }

  void ExpectRejected(RawStream& stream, const v1::StreamChunksRequest& message,
                      const std::string& reason) {
    SCOPED_TRACE(reason);
    ASSERT_TRUE(stream.Send(message));
    const auto ack = stream.WaitAck(hostile_, ++hostile_sequence_);
    ASSERT_TRUE(ack.has_value()) << master_->LogTail();
    ASSERT_EQ(ack->rejections_size(), 1);
    EXPECT_EQ(ack->rejections(0).reason(), reason) << ack->rejections(0).message();
    ExpectHealthy(stream);
  }

  void ExpectRefused(RawStream& stream, const v1::StreamChunksRequest& message,
                     const std::string& reason) {
    SCOPED_TRACE(reason);
    ASSERT_TRUE(stream.Send(message));
    const auto refused = WaitRefused(stream);
    ASSERT_TRUE(refused.has_value()) << master_->LogTail();
    EXPECT_EQ(refused->reason(), reason) << refused->message();
    ExpectHealthy(stream);
  }

  const Uuid healthy_ = Uuid::Random();
  const Uuid hostile_ = Uuid::Random();
  std::uint64_t healthy_sequence_ = 0;
  std::uint64_t hostile_sequence_ = 0;
};

TEST_F(HostileTest, EachIsAnsweredAndTheHealthyWriterGoesOn) {
  StartMaster();
  RawStream stream(*client_);
  const std::int64_t trial_id = Open(stream, healthy_, "healthy").trial_id();
  const std::int64_t hostile_trial = Open(stream, hostile_, "hostile", 1).trial_id();
  const auto next = [&] { return hostile_sequence_ + 1; };

  // Not consumed: the sequence stays.
  ExpectRefused(stream, ChunkMessage(hostile_, 7, OneColumn(1, NowUs(), 1, {1})), "SEQUENCE_HOLE");
  v1::StreamChunksRequest damaged = ChunkMessage(hostile_, 1, OneColumn(1, NowUs(), 1, {1}));
  damaged.mutable_chunk()->set_crc32c(damaged.chunk().crc32c() ^ 1);
  ExpectRefused(stream, damaged, "CHECKSUM");
  ExpectRefused(stream, ChunkMessage(Uuid::Random(), 1, OneColumn(1, NowUs(), 1, {1})), "NOT_OPEN");
  ExpectRefused(stream, v1::StreamChunksRequest(), "MESSAGE_UNKNOWN");
  ExpectRefused(stream, OpenMessage({.writer = Uuid::Random(), .trial_id = 1'999'999'999}),
                "TRIAL_NOT_FOUND");
  v1::StreamChunksRequest bomb = DefinitionMessage(hostile_, {{.ref = 5, .name = "bomb"}});
  for (int i = 0; i < 10'000; ++i) {
    (*bomb.mutable_definitions()->mutable_definitions(0)->mutable_labels())[absl::StrCat("l", i)] =
        "v";
  }
  ExpectRefused(stream, bomb, "LABEL_COUNT");
  v1::StreamChunksRequest nul = DefinitionMessage(hostile_, {{.ref = 6}});
  nul.mutable_definitions()->mutable_definitions(0)->set_name(std::string("a\0b", 3));
  ExpectRefused(stream, nul, "CONTROL_CHARACTER");
  ExpectRefused(stream, DefinitionMessage(hostile_, {{.ref = 1, .name = "other"}}),
                "REF_REDEFINED");

  // Consumed: the sequence moves, the reason comes with the ack.
  ExpectRejected(stream, ChunkMessage(hostile_, next(), OneColumn(42, NowUs(), 1, {1})),
                 "UNKNOWN_REF");
  ExpectRejected(stream, ChunkMessage(hostile_, next(), std::string((1 << 20) + 1, 'x')),
                 "CHUNK_BYTES");
  ExpectRejected(stream, ChunkMessage(hostile_, next(), std::string(6 << 20, 'x')), "CHUNK_BYTES");
  ExpectRejected(stream, ChunkMessage(hostile_, next(), std::string("\xFF\xFF")), "BODY_MALFORMED");
  ExpectRejected(stream,
                 ChunkMessage(hostile_, next(),
                              OneColumn(1, std::numeric_limits<std::int64_t>::max(), 1, {1, 2})),
                 "TIME_RANGE");
  ExpectRejected(stream, ChunkMessage(hostile_, next(), OneColumn(5, NowUs(), 1, {1})),
                 "LABEL_COUNT");

  // Legal, however odd: kept as given, and flagged.
  const std::uint64_t odd = next();
  ASSERT_TRUE(stream.Send(ChunkMessage(hostile_, odd, OneColumn(1, 0, 1, {1970}))));
  ASSERT_TRUE(
      stream.Send(ChunkMessage(hostile_, odd + 1, OneColumn(1, 9'223'372'036'854'775, 1, {2262}))));
  const auto ack = stream.WaitAck(hostile_, odd + 1);
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->rejections_size(), 0);
  // A repeat is acked, not stored.
  ASSERT_TRUE(stream.Send(ChunkMessage(hostile_, odd, OneColumn(1, 0, 1, {1970}))));
  ASSERT_TRUE(stream.WaitAck(hostile_, odd + 1).has_value());

  ASSERT_TRUE(client_->Flush().ok());
  EXPECT_EQ(Samples(trial_id, "value").size(), 2 * healthy_sequence_);
  const auto kept = Samples(hostile_trial, "value");
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].time_us, 0);
  EXPECT_EQ(kept[1].time_us, 9'223'372'036'854'775);
  EXPECT_GE(QueryNumber("select count(*) from stepwell.gaps where trial_id = $1 and cause = 10",
                        hostile_trial),
            1);
  EXPECT_GE(QueryNumber("select count(*) from stepwell.gaps where trial_id = $1 and cause = 9",
                        hostile_trial),
            1);
}

TEST_F(HostileTest, TextThatIsNotUtf8IsNamedAndTheStreamGoesOn) {
  StartMaster();
  RawStream stream(*client_);
  Open(stream, healthy_, "healthy");
  // definitions{writer, definitions{name}} with one byte that is no UTF-8; protobuf will not write
  // it as a field, so it goes out as one that is unknown.
  const std::string definition = absl::StrCat("\x12", std::string(1, '\x03'), "\x22\x01\xFF");
  const std::string inner = absl::StrCat("\x0A\x10", healthy_.ToBytes(), definition);
  ASSERT_TRUE(stream.SendBytes(
      absl::StrCat("\x12", std::string(1, static_cast<char>(inner.size())), inner)));
  const auto refused = WaitRefused(stream);
  ASSERT_TRUE(refused.has_value()) << master_->LogTail();
  EXPECT_EQ(refused->reason(), "INVALID_UTF8");
  EXPECT_EQ(refused->message(), "definitions.definitions.name is not valid UTF-8");
  EXPECT_EQ(refused->writer(), healthy_.ToBytes());
  EXPECT_FALSE(refused->terminal());
  ExpectHealthy(stream);
}

TEST_F(HostileTest, AStormOfConnectionsLeavesTheListenerHearing) {
  StartMaster({"--connections-per-address-max=8"});
  {
    std::vector<std::unique_ptr<IngestClient>> crowd;
    for (int i = 0; i < 40; ++i) {
      crowd.push_back(std::make_unique<IngestClient>(master_->grpc_address()));
      crowd.back()->channel()->GetState(true);
    }
    EXPECT_TRUE(Eventually([&] { return master_->CountInLog("too many of this address") > 0; },
                           absl::Seconds(20)));
  }
  // All of them left: there is room again.
  IngestClient late(master_->grpc_address());
  EXPECT_EQ(late.GetStatus().role(), "owner");
}

// A plain TCP connection that says nothing; -1 when refused.
int Connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

TEST_F(HostileTest, RunningOutOfDescriptorsDoesNotDeafenTheListener) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = 128;
  // The master takes it over from us.
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  StartMaster();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  const auto listen = ParseHostPort(master_->grpc_address());
  ASSERT_TRUE(listen.ok());
  std::vector<int> crowd;
  for (int i = 0; i < 200; ++i) crowd.push_back(Connect(listen->port));
  EXPECT_TRUE(
      Eventually([&] { return master_->CountInLog("accept_failed") > 0; }, absl::Seconds(20)));
  for (const int fd : crowd) close(fd);
  RawStream stream(*client_);
  Open(stream, healthy_, "healthy");
  ExpectHealthy(stream);
}

}  // namespace
}  // namespace stepwell::testing
