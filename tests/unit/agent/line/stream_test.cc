// What becomes of a connection on which nothing moves any more.
#include "client/agent/stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "absl/cleanup/cleanup.h"
#include "absl/time/clock.h"
#include "client/agent/outbound_writer.h"
#include "tests/unit/agent/line/fake_master.h"

namespace stepwell::agent {
namespace {

constexpr int kFrames = 16;
constexpr char kChildVariable[] = "STEPWELL_TEST_MASTER_PIPE";
constexpr std::size_t kFrameBytes = 1 << 20;

class StreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/stepwell-stream-test-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    path_ = pattern;
    master_.Start();
    master_.SetCredit(std::int64_t{1} << 30);
    Spool::Options options;
    options.writer = Uuid::Random();
    auto spool = Spool::Open(FileDescriptor(open(path_.c_str(), O_RDONLY | O_DIRECTORY)), options,
                             RealClock::Get());
    ASSERT_TRUE(spool.ok()) << spool.status();
    spool_ = *std::move(spool);
    WriterIdentity identity;
    identity.trial = "t";
    identity.token = "of-the-writer";
    sender_.Add(std::make_shared<OutboundWriter>(identity, AgentFace(), spool_));
  }
  void TearDown() override { std::filesystem::remove_all(path_); }

  // By default more than what gRPC takes without the other side reading.
  void AppendFrames(int count = kFrames, std::size_t bytes = kFrameBytes) {
    pb::ChunkBody body;
    body.add_losses()->set_reason(std::string(bytes, 'x'));
    for (int i = 0; i < count; ++i) {
      const Spool::Sealed sealed{1000, {1, 1, 1}, body.SerializeAsString()};
      ASSERT_TRUE(spool_->AppendFrames({&sealed, 1}, Checkpoint()).ok());
    }
  }
  Stream::Options OptionsOf(absl::Duration silence_max) const {
    Stream::Options options;
    options.server = master_.address();
    options.silence_max = silence_max;
    return options;
  }
  static bool TendUntil(Stream& stream, const std::function<bool()>& holds) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (!holds()) {
      if (absl::Now() > deadline) return false;
      stream.Tend();
      absl::SleepFor(absl::Milliseconds(10));
    }
    return true;
  }

  std::string path_;
  FakeMaster master_;
  Sender sender_;
  std::shared_ptr<Spool> spool_;
};

// Its machine and its gRPC live on: only that it takes nothing shows.
TEST_F(StreamTest, AMasterThatTakesNothingMoreIsLeftThoughAMessageIsStuck) {
  Stream stream(OptionsOf(absl::Seconds(1)), sender_, RealClock::Get(), [] {});
  stream.Start();
  ASSERT_TRUE(TendUntil(stream, [&] { return master_.stream_count() == 1; }));
  master_.Pause();
  AppendFrames();
  EXPECT_TRUE(TendUntil(stream, [&] { return master_.stream_count() >= 2; }));
  master_.Resume();
  EXPECT_TRUE(TendUntil(stream, [&] { return spool_->acked().sequence == kFrames; }));
  stream.Stop();
  const FakeMaster::Writer writer = master_.writers().begin()->second;
  EXPECT_EQ(writer.chunks.size(), static_cast<std::size_t>(kFrames));
  EXPECT_TRUE(writer.wrongs.empty()) << writer.wrongs.front();
}

// Not a test of its own: a master in a process, to be stopped.
TEST_F(StreamTest, MasterInAProcess) {
  const char* told = getenv(kChildVariable);
  if (told == nullptr) return;
  const int port = master_.port();
  ASSERT_EQ(write(atoi(told), &port, sizeof port), static_cast<ssize_t>(sizeof port));
  pause();
}

// The kernel of its machine keeps the connection up, and takes what fits its buffers: only a ping
// shows it.
TEST_F(StreamTest, AStoppedMasterIsLeftThoughItsConnectionStands) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    setenv(kChildVariable, std::to_string(pipe_fds[1]).c_str(), 1);
    execl("/proc/self/exe", "child", "--gtest_filter=StreamTest.MasterInAProcess", nullptr);
    _exit(127);
  }
  const absl::Cleanup reap = [child] {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  };
  int port = 0;
  ASSERT_EQ(read(pipe_fds[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
  Stream::Options options;
  options.server = "127.0.0.1:" + std::to_string(port);
  options.ping_interval = absl::Seconds(1);
  options.ping_timeout = absl::Seconds(1);
  std::atomic<bool> answered = false;
  Stream stream(options, sender_, RealClock::Get(), [&] { answered = true; });
  stream.Start();
  ASSERT_TRUE(TendUntil(stream, [&] { return answered.load(); }));
  ASSERT_EQ(kill(child, SIGSTOP), 0);
  AppendFrames(1, 100);
  const auto waits = [this] { return sender_.awaits_answer(); };
  ASSERT_TRUE(TendUntil(stream, waits));
  EXPECT_TRUE(TendUntil(stream, [&] { return !waits(); }));
  EXPECT_EQ(spool_->acked().sequence, 0u);
  stream.Stop();
}

TEST_F(StreamTest, AnIdleStreamIsNotSilent) {
  Stream stream(OptionsOf(absl::Milliseconds(200)), sender_, RealClock::Get(), [] {});
  stream.Start();
  AppendFrames();
  ASSERT_TRUE(TendUntil(stream, [&] { return spool_->acked().sequence == kFrames; }));
  const absl::Time until = absl::Now() + absl::Seconds(1);
  TendUntil(stream, [&] { return absl::Now() > until; });
  EXPECT_EQ(master_.stream_count(), 1);
  stream.Stop();
}

// An Open's answer waits for a commit: its time is the less certain one.
TEST_F(StreamTest, TheTimeIsAskedForBesideTheStreamWithAWritersToken) {
  master_.SetClockAhead(absl::Seconds(100));
  master_.SetRewrite([](std::vector<pb::StreamChunksResponse>& said) {
    for (auto& each : said) {
      if (each.has_opened()) each.mutable_opened()->set_server_time_us(0);
    }
  });
  Stream stream(OptionsOf(absl::Seconds(60)), sender_, RealClock::Get(), [] {});
  stream.Start();
  std::optional<ClockOffset::Reading> read;
  ASSERT_TRUE(TendUntil(stream, [&] {
    read = sender_.clock_offset().Read(absl::Now(), RealClock::Get().Monotonic());
    return read.has_value();
  }));
  stream.Stop();
  EXPECT_LE(absl::AbsDuration(read->ahead - absl::Seconds(100)),
            read->error + absl::Milliseconds(50));  // this process rested between its two looks
  ASSERT_EQ(master_.clock_tokens().size(), 1u) << "the next one is due in a minute";
  EXPECT_EQ(master_.clock_tokens()[0], "Bearer of-the-writer");
}

// Whatever a program says its token is; a master that asks for none takes it in an Open.
TEST_F(StreamTest, ATokenThatIsNoHeaderIsNotShown) {
  for (const std::string& token : {std::string("with its line\n"), std::string("\xC3\xBC"),
                                   std::string("\0x", 2), std::string(1 << 20, 'x')}) {
    SCOPED_TRACE(token.size());
    FakeMaster master;
    master.Start();
    Sender sender;
    WriterIdentity identity;
    identity.trial = "t";
    identity.token = token;
    sender.Add(std::make_shared<OutboundWriter>(identity, AgentFace(), spool_));
    Stream::Options options = OptionsOf(absl::Seconds(60));
    options.server = master.address();
    Stream stream(options, sender, RealClock::Get(), [] {});
    stream.Start();
    ASSERT_TRUE(TendUntil(stream, [&] { return !master.clock_tokens().empty(); }));
    EXPECT_EQ(master.clock_tokens()[0], "");
    stream.Stop();
  }
}

TEST_F(StreamTest, AMasterThatTellsNoTimeIsServedAllTheSame) {
  master_.Stop();
  master_.TellNoClock();
  master_.Start();
  Stream stream(OptionsOf(absl::Seconds(60)), sender_, RealClock::Get(), [] {});
  stream.Start();
  AppendFrames();
  EXPECT_TRUE(TendUntil(stream, [&] { return spool_->acked().sequence == kFrames; }));
  stream.Stop();
  EXPECT_EQ(master_.stream_count(), 1);
  EXPECT_TRUE(master_.clock_tokens().empty());
}

TEST_F(StreamTest, AQuestionForTheTimeKeepsNoStreamFromEnding) {
  master_.HoldClock();
  Stream stream(OptionsOf(absl::Seconds(60)), sender_, RealClock::Get(), [] {});
  stream.Start();
  ASSERT_TRUE(TendUntil(stream, [&] { return master_.clock_tokens().size() == 1; }));
  const absl::Time begin = absl::Now();
  stream.Stop();
  EXPECT_LT(absl::Now() - begin, absl::Seconds(5)) << "a question waits for ten seconds";
}

}  // namespace
}  // namespace stepwell::agent
