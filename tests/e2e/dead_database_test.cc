// A database that is there and answers nothing: clients are told to wait, memory stays bounded, and
// all goes on by itself when it answers again.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"
#include "tests/support/postgres.h"

namespace stepwell::testing {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The postmaster and all that it has started, stopped and continued as one.
class FrozenPostgres {
 public:
  explicit FrozenPostgres(pid_t postmaster) {
    // The postmaster first: it starts nobody any more.
    Stop(postmaster);
    const std::string children =
        ReadText(absl::StrCat("/proc/", postmaster, "/task/", postmaster, "/children"));
    for (const absl::string_view text : absl::StrSplit(children, ' ', absl::SkipWhitespace())) {
      int child = 0;
      if (absl::SimpleAtoi(text, &child)) Stop(child);
    }
  }
  FrozenPostgres(const FrozenPostgres&) = delete;
  ~FrozenPostgres() { Thaw(); }

  void Thaw() {
    for (const pid_t pid : stopped_) kill(pid, SIGCONT);
    stopped_.clear();
  }
  std::size_t count() const { return stopped_.size(); }

 private:
  void Stop(pid_t pid) {
    if (pid > 0 && kill(pid, SIGSTOP) == 0) stopped_.push_back(pid);
  }
  std::vector<pid_t> stopped_;
};

#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kSanitizerBytes = 272 << 20;
#else
constexpr std::int64_t kSanitizerBytes = 0;
#endif

// The memory of a process now.
std::int64_t ResidentBytes(pid_t pid) {
  const std::vector<std::string> fields =
      absl::StrSplit(ReadText(absl::StrCat("/proc/", pid, "/statm")), ' ');
  std::int64_t pages = 0;
  return fields.size() > 1 && absl::SimpleAtoi(fields[1], &pages) ? pages * sysconf(_SC_PAGESIZE)
                                                                  : -1;
}

// Sends its first chunks, which are small, and once it is let go all of them, as fast as the stream takes them, whatever its
// credit says; opens again and sends again what is not acked when the stream ends. Notes the credit that it
// is told.
class GreedyWriter {
 public:
  static constexpr std::uint64_t kFirstChunks = 10;

  // Of a chunk. Padding is read and passed over: it lies with the stream, never in the queue.
  struct Load {
    std::size_t sample_count = 1;
    std::size_t padding = 0;
  };

  GreedyWriter(const std::string& address, std::uint64_t chunk_count, Load load, int rank)
      : client_(address), chunk_count_(chunk_count), load_(load), rank_(rank) {
    worker_ = Worker("greedy", [this] { Run(); });
  }
  ~GreedyWriter() {
    {
      absl::MutexLock lock(&mu_);
      giving_up_ = true;
      if (stream_ != nullptr) stream_->Cancel();
    }
    worker_.Join();
  }

  void LetGo() {
    absl::MutexLock lock(&mu_);
    let_go_ = true;
  }
  bool credit_stopped() const {
    absl::MutexLock lock(&mu_);
    return credit_bytes_ == 0;
  }
  bool credit_flows() const {
    absl::MutexLock lock(&mu_);
    return credit_bytes_ > 0;
  }
  std::uint64_t acked() const {
    absl::MutexLock lock(&mu_);
    return acked_;
  }
  bool has_begun() const { return acked() >= kFirstChunks; }
  bool goes_on() const { return acked() > kFirstChunks; }
  bool done() const { return acked() >= chunk_count_; }
  std::int64_t trial_id() const {
    absl::MutexLock lock(&mu_);
    return trial_id_;
  }

 private:
  void Run() {
    while (!done()) {
      RawStream stream(client_);
      {
        absl::MutexLock lock(&mu_);
        if (giving_up_) return;
        stream_ = &stream;
      }
      Serve(stream);
      absl::MutexLock lock(&mu_);
      stream_ = nullptr;
    }
  }

  void Serve(RawStream& stream) {
    stream.Send(OpenMessage({.writer = writer_, .external_id = "greedy", .rank = rank_}));
    const auto opened = stream.WaitFor([](const auto& answer) { return answer.has_opened(); });
    if (!opened) return;
    {
      absl::MutexLock lock(&mu_);
      trial_id_ = opened->opened().trial_id();
      acked_ = opened->opened().committed_sequence();
    }
    stream.Send(DefinitionMessage(writer_, {{}}));
    Worker reader("acks", [&] { TakeAcks(stream); });
    for (std::uint64_t i = acked() + 1; i <= chunk_count_ && MaySend(i); ++i) {
      if (!stream.Send(Chunk(i))) break;
    }
    reader.Join();
  }

  // Waits until it may; false: nobody wants it any more.
  bool MaySend(std::uint64_t sequence) const {
    absl::MutexLock lock(&mu_);
    const auto may_go_on = [&] {
      mu_.AssertReaderHeld();
      return let_go_ || giving_up_ || sequence <= kFirstChunks;
    };
    mu_.Await(absl::Condition(&may_go_on));
    return !giving_up_;
  }

  // Until all is acked or the stream ends.
  void TakeAcks(RawStream& stream) {
    while (!done()) {
      const auto answer = stream.Next(absl::Minutes(3));
      if (!answer) return;
      if (!answer->has_ack()) continue;
      absl::MutexLock lock(&mu_);
      acked_ = std::max(acked_, answer->ack().committed_sequence());
      credit_bytes_ = answer->ack().credit_bytes();
    }
  }

  v1::StreamChunksRequest Chunk(std::uint64_t sequence) const {
    const Load load = sequence <= kFirstChunks ? Load() : load_;
    const double value = rank_ * 1e6 + static_cast<double>(sequence);
    v1::ChunkBody body = OneColumn(1, NowUs(), 1000, std::vector<double>(load.sample_count, value));
    body.GetReflection()->MutableUnknownFields(&body)->AddLengthDelimited(
        1000, std::string(load.padding, 'p'));
    return ChunkMessage(writer_, sequence, body);
  }

  IngestClient client_;
  const std::uint64_t chunk_count_;
  const Load load_;
  const int rank_;
  const Uuid writer_ = Uuid::Random();
  mutable absl::Mutex mu_;
  RawStream* stream_ ABSL_GUARDED_BY(mu_) = nullptr;
  bool giving_up_ ABSL_GUARDED_BY(mu_) = false;
  bool let_go_ ABSL_GUARDED_BY(mu_) = false;
  std::uint64_t acked_ ABSL_GUARDED_BY(mu_) = 0;
  std::int64_t credit_bytes_ ABSL_GUARDED_BY(mu_) = -1;
  std::int64_t trial_id_ ABSL_GUARDED_BY(mu_) = 0;
  Worker worker_;
};

class DeadDatabaseTest : public SpineTest {
 protected:
  using Writers = std::vector<std::unique_ptr<GreedyWriter>>;

  static std::function<bool()> AllSay(const Writers& writers, bool (GreedyWriter::*says)() const) {
    return [&writers, says] {
      return std::all_of(writers.begin(), writers.end(),
                         [says](const auto& writer) { return (*writer.*says)(); });
    };
  }
  pid_t MasterPid() const {
    const auto ready = nlohmann::json::parse(ReadText(scratch_ / "master.ready"), nullptr, false);
    return ready.is_object() ? ready.value("pid", 0) : 0;
  }
};

TEST_F(DeadDatabaseTest, ClientsWaitMemoryIsBoundedAndAllGoesOnByItself) {
  constexpr std::int64_t kQueueBytes = 8 << 20;
  constexpr int kWriterCount = 4;
  constexpr std::size_t kPadding = 512 << 10;
  constexpr std::uint64_t kChunkCount = 160;  // 320 MiB of all writers
  // Of the master, above what it has idle: the queue, the group in the committer's hands with its rows
  // and its copy for the wire (8 MiB, three times), what gRPC holds of each stream, and as much as a
  // fold may find, with what malloc keeps: 160 MiB, half of what is pushed at it.
  constexpr std::int64_t kGrowthBytesMax =
      kQueueBytes + (24 << 20) + kWriterCount * (16 << 20) + (64 << 20);
  StartMaster({"--queue-bytes", absl::StrCat(kQueueBytes)});
  const pid_t master_pid = MasterPid();
  const std::int64_t idle = ResidentBytes(master_pid);
  ASSERT_GT(idle, 0);
  Writers writers;
  for (int rank = 0; rank < kWriterCount; ++rank) {
    writers.push_back(std::make_unique<GreedyWriter>(
        master_->grpc_address(), kChunkCount, GreedyWriter::Load{.padding = kPadding}, rank));
  }
  const auto all = [&](bool (GreedyWriter::*says)() const) { return AllSay(writers, says); };
  ASSERT_TRUE(Eventually(all(&GreedyWriter::has_begun), absl::Seconds(60))) << master_->LogTail();

  FrozenPostgres frozen(master_->PostmasterPid());
  ASSERT_GT(frozen.count(), 1U);
  for (const auto& writer : writers) writer->LetGo();
  const absl::Time begin = absl::Now();
  EXPECT_TRUE(Eventually(all(&GreedyWriter::credit_stopped), absl::Seconds(20)))
      << master_->LogTail();
  std::printf("credit 0 told to all after %s\n", absl::FormatDuration(absl::Now() - begin).c_str());
  std::vector<std::uint64_t> stood;
  for (const auto& writer : writers) stood.push_back(writer->acked());
  EXPECT_TRUE(Eventually([&] { return master_->Get("/readyz").substr(0, 12) == "HTTP/1.1 503"; },
                         absl::Seconds(20)));
  EXPECT_EQ(master_->Get("/livez").substr(0, 12), "HTTP/1.1 200");
  const auto down = client_->GetStatus();
  EXPECT_FALSE(down.database_up());
  EXPECT_NE(down.database_error(), "");
  EXPECT_EQ(down.streams_open(), kWriterCount);
  EXPECT_EQ(down.writers_open(), kWriterCount);
  // As long as another renewal takes to fail: the writers push all the while.
  std::int64_t most = 0;
  Eventually(
      [&] {
        most = std::max(most, ResidentBytes(master_pid));
        return false;
      },
      absl::Seconds(8));
  std::printf("resident %lld MiB idle, at most %lld MiB while the database stood\n",
              static_cast<long long>(idle >> 20), static_cast<long long>(most >> 20));
  EXPECT_LT(most - idle, kGrowthBytesMax);
  for (std::size_t i = 0; i < writers.size(); ++i) {
    EXPECT_EQ(writers[i]->acked(), stood[i]) << "nothing can have been committed";
    EXPECT_FALSE(writers[i]->done());
  }

  frozen.Thaw();
  EXPECT_TRUE(Eventually(all(&GreedyWriter::credit_flows), absl::Seconds(30)))
      << master_->LogTail();
  EXPECT_TRUE(Eventually(all(&GreedyWriter::done), absl::Seconds(90))) << master_->LogTail();
  ASSERT_TRUE(master_->running());
  ASSERT_TRUE(client_->Flush().ok()) << master_->LogTail();
  const auto up = client_->GetStatus();
  EXPECT_TRUE(up.database_up());
  EXPECT_EQ(up.database_error(), "");
  EXPECT_EQ(up.unfolded_bytes(), 0);
  std::multiset<double> stored;
  for (const auto& sample : Samples(writers[0]->trial_id(), "value")) stored.insert(sample.value);
  EXPECT_EQ(stored.size(), kWriterCount * kChunkCount);
  EXPECT_EQ(std::set<double>(stored.begin(), stored.end()).size(), kWriterCount * kChunkCount);
}

// Each takes little of the queue by itself: what is held of its stream is what counts, in gRPC and while it waits.
TEST_F(DeadDatabaseTest, OfEachOfManyStreamsThatSendOnOneMessageIsHeld) {
  constexpr std::int64_t kQueueBytes = 8 << 20;
  constexpr int kWriterCount = 64;
  // 572 KiB as they travel, 1.7 MiB once they are decoded.
  constexpr GreedyWriter::Load kLoad{.sample_count = 58'000};
  constexpr std::int64_t kMessageBytes = 572 << 10;
  constexpr std::int64_t kWindowBytes = 256 << 10;
  // Of the master, above what it has idle: a message and a window of each stream, the queue, the group in the
  // committer's hands with its rows and its copy for the wire, and what malloc and 64 threads keep.
  constexpr std::int64_t kGrowthBytesMax = kWriterCount * (kMessageBytes + kWindowBytes) +
                                           kQueueBytes + (24 << 20) + (24 << 20) + kSanitizerBytes;
  StartMaster({"--queue-bytes", absl::StrCat(kQueueBytes)});
  const pid_t master_pid = MasterPid();
  const std::int64_t idle = ResidentBytes(master_pid);
  ASSERT_GT(idle, 0);
  Writers writers;
  for (int rank = 0; rank < kWriterCount; ++rank) {
    // More than anybody holds of it.
    writers.push_back(std::make_unique<GreedyWriter>(master_->grpc_address(), 1000, kLoad, rank));
  }
  ASSERT_TRUE(Eventually(AllSay(writers, &GreedyWriter::has_begun), absl::Seconds(60)))
      << master_->LogTail();
  std::int64_t most = 0;
  {
    FrozenPostgres frozen(master_->PostmasterPid());
    ASSERT_GT(frozen.count(), 1U);
    for (const auto& writer : writers) writer->LetGo();
    // They push all the while.
    Eventually(
        [&] {
          most = std::max(most, ResidentBytes(master_pid));
          return false;
        },
        absl::Seconds(8));
    EXPECT_FALSE(std::any_of(writers.begin(), writers.end(), [](const auto& writer) {
      return writer->goes_on();
    })) << "nothing can have been committed";
  }
  std::printf("resident %lld MiB idle, at most %lld MiB while the database stood; bound %lld MiB\n",
              static_cast<long long>(idle >> 20), static_cast<long long>(most >> 20),
              static_cast<long long>((idle + kGrowthBytesMax) >> 20));
  EXPECT_LT(most - idle, kGrowthBytesMax);
  EXPECT_TRUE(Eventually(AllSay(writers, &GreedyWriter::goes_on), absl::Seconds(90)))
      << master_->LogTail();
  ASSERT_TRUE(master_->running());
}

TEST_F(DeadDatabaseTest, AStopWaitsTenSecondsForIt) {
  MasterProcess::Options options;
  options.scratch = scratch_.path();
  options.database_url = TestPostgres::Get().Durable().FreshDatabase();
  master_ = std::make_unique<MasterProcess>(std::move(options));
  const auto postmaster = Connect(TestPostgres::Get().server().url())
                              ->Exec(
                                  "select split_part(pg_read_file('postmaster.pid'), E'\\n', 1)"
                                  "::int");
  ASSERT_TRUE(postmaster.ok()) << postmaster.status();
  for (const bool is_idle : {true, false}) {
    SCOPED_TRACE(is_idle ? "idle" : "a chunk on its way");
    ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
    std::optional<GreedyWriter> writer;
    writer.emplace(master_->grpc_address(), is_idle ? 5 : 100'000,
                   GreedyWriter::Load{.padding = 1000}, 0);
    writer->LetGo();
    ASSERT_TRUE(Eventually([&] { return writer->acked() >= 5; }, absl::Seconds(60)));
    absl::Duration took;
    {
      FrozenPostgres frozen(postmaster->Int32(0, 0));
      ASSERT_GT(frozen.count(), 1U);
      if (!is_idle) {
        ASSERT_TRUE(Eventually([&] { return writer->credit_stopped(); }, absl::Seconds(30)));
      }
      // Its chunks stay in the master's queue.
      writer.reset();
      const absl::Time begin = absl::Now();
      EXPECT_EQ(master_->Stop(), "exit 0") << master_->LogTail();
      took = absl::Now() - begin;
    }
    std::printf("stopped after %s\n", absl::FormatDuration(took).c_str());
    // Eight until the cut, or ten of a connection that is just being made, and the rest of the stop.
    EXPECT_LT(took, absl::Seconds(12));
  }
  // And it comes back.
  ASSERT_TRUE(master_->StartAndWait()) << master_->LogTail();
  client_ = std::make_unique<IngestClient>(master_->grpc_address());
  ASSERT_TRUE(client_->Flush().ok()) << master_->LogTail();
}

}  // namespace
}  // namespace stepwell::testing
