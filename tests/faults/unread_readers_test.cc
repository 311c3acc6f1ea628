// Clients that take no answers, and then are gone: followers of a trial beside the training that they follow, and writers. They
// cost the master memory within its bounds (bounds_watch.cc), and other writers nothing.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/uuid.h"
#include "stepwell/v1/ingest.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/faults/checker/bounds.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kFollowers = 30;
// Of one stream to its client: what the transport takes before it waits, and what the master keeps for it.
constexpr std::int64_t kFollowerKib = 512;
constexpr int kDeaf = 30;
// The same, and what is read ahead of its messages (256 KiB).
constexpr std::int64_t kDeafKib = 1024;
// What such a writer sends at least before nothing more is taken of it.
constexpr std::int64_t kDeafBytesMin = 512 << 10;
// 40,000 a second, and as many to each follower.
constexpr std::uint64_t kSamples = 120'000;

// A call whose answers nobody takes; cancelled at its end.
class Follower {
 public:
  explicit Follower(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::QueryService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    v1::FollowSamplesRequest request;
    request.mutable_trial()->set_external_id("faults");
    reader_ = stub_->FollowSamples(&context_, request);
  }
  ~Follower() {
    context_.TryCancel();
    v1::FollowSamplesResponse left;
    while (reader_->Read(&left)) {
    }
    (void)reader_->Finish();
  }
  Follower(const Follower&) = delete;
  Follower& operator=(const Follower&) = delete;

  // The first answer: the master knows it.
  bool Begin() {
    v1::FollowSamplesResponse first;
    return reader_->Read(&first);
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::QueryService::Stub> stub_;
  std::unique_ptr<grpc::ClientReader<v1::FollowSamplesResponse>> reader_;
};

// A writer that opens wrongly again and again, each of which is refused, and takes not one answer; on a thread of its own until
// its stream ends.
class DeafWriter {
 public:
  explicit DeafWriter(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // Else its own side takes megabytes of answers that nobody reads.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    stub_ = v1::IngestService::NewStub(
        grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments));
    stream_ = stub_->StreamChunks(&context_);
    sender_ = std::thread([this] { Send(); });
  }
  ~DeafWriter() {
    context_.TryCancel();
    sender_.join();
    v1::StreamChunksResponse left;
    while (stream_->Read(&left)) {
    }
    (void)stream_->Finish();
  }
  DeafWriter(const DeafWriter&) = delete;
  DeafWriter& operator=(const DeafWriter&) = delete;

  std::int64_t sent_bytes() const { return sent_bytes_; }

 private:
  void Send() {
    v1::StreamChunksRequest open;
    open.mutable_open()->set_writer(Uuid::Random().ToBytes());
    open.mutable_open()->set_external_id(std::string(1000, 'x'));
    const auto bytes = static_cast<std::int64_t>(open.ByteSizeLong());
    while (stream_->Write(open)) sent_bytes_ += bytes;
  }

  grpc::ClientContext context_;
  std::unique_ptr<v1::IngestService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
      stream_;
  std::atomic<std::int64_t> sent_bytes_{0};
  std::thread sender_;
};

class UnreadReadersTest : public ::testing::Test {
 protected:
  void StartMaster() { ASSERT_TRUE(master_.StartAndWait()) << master_.LogTail(); }
  void StartProducers() {
    scene_.StartAgent(master_.grpc_address());
    scene_.StartTrainer(0);
    for (const int rank : {10, 11}) {
      scene_.StartRawWriter(rank, master_.grpc_address(),
                            {{"--series", "20"}, {"--samples", "50"}, {"--rate", "20"}});
    }
  }
  std::uint64_t Committed() {
    const auto status = client_.Status();
    return status ? status->samples_committed() : 0;
  }
  void AwaitSamples(std::uint64_t count, const std::string& when) {
    const std::uint64_t before = Committed();
    ASSERT_TRUE(scene_.Await(absl::StrCat(count, " samples ", when), absl::Seconds(90),
                             [&] { return Committed() >= before + count; }))
        << scene_.Logs() << master_.LogTail();
  }
  std::int64_t MemoryKib() const { return ReadUsage(master_.pid(), "serve").memory_kib; }
  void ExpectLittleMemory(std::int64_t before_kib, int count, std::int64_t each_kib) {
    const std::int64_t after_kib = MemoryKib();
    scene_.Say(absl::StrCat("resident ", before_kib >> 10, " MiB before, ", after_kib >> 10,
                            " MiB with ", count, " of them"));
    EXPECT_LT(after_kib - before_kib, count * each_kib);
  }
  void End() {
    scene_.StopProducers(absl::Seconds(60));
    const Verdict verdict = scene_.ExpectExact(master_, Demand::kRecorded);
    EXPECT_EQ(verdict.declared_count, 0U);
    EXPECT_EQ(master_.Stop(), "exit 0") << master_.LogTail();
  }

  Scene scene_{"unread readers"};
  MasterProcess master_{{.scratch = scene_.path("")}};
  MasterClient client_{master_.grpc_address()};
};

TEST_F(UnreadReadersTest, CostBoundedMemoryAndWritersNothing) {
  ASSERT_NO_FATAL_FAILURE(StartMaster());
  StartProducers();
  ASSERT_NO_FATAL_FAILURE(AwaitSamples(kSamples / 4, "before"));
  const std::int64_t before_kib = MemoryKib();
  std::vector<std::unique_ptr<Follower>> followers;
  for (int i = 0; i < kFollowers; ++i) {
    followers.push_back(std::make_unique<Follower>(master_.grpc_address()));
    ASSERT_TRUE(followers.back()->Begin()) << master_.LogTail();
  }
  ASSERT_NO_FATAL_FAILURE(AwaitSamples(kSamples / 2, "beside readers that read nothing"));
  ExpectLittleMemory(before_kib, kFollowers, kFollowerKib);
  followers.clear();
  ASSERT_NO_FATAL_FAILURE(AwaitSamples(kSamples / 8, "after they are gone"));
  Follower late(master_.grpc_address());
  EXPECT_TRUE(late.Begin()) << master_.LogTail();
  End();
}

// Before the producers, whose samples take memory, too.
TEST_F(UnreadReadersTest, WritersThatTakeNoAnswersCostBoundedMemoryAndOthersNothing) {
  ASSERT_NO_FATAL_FAILURE(StartMaster());
  const std::int64_t before_kib = MemoryKib();
  std::vector<std::unique_ptr<DeafWriter>> deaf;
  for (int i = 0; i < kDeaf; ++i) {
    deaf.push_back(std::make_unique<DeafWriter>(master_.grpc_address()));
  }
  std::int64_t sent_bytes = 0;
  absl::Time moved = absl::Now();
  ASSERT_TRUE(scene_.Await("nothing more is taken of them", absl::Seconds(60),
                           [&] {
                             std::int64_t sum = 0;
                             bool is_much = true;
                             for (const auto& each : deaf) {
                               sum += each->sent_bytes();
                               is_much = is_much && each->sent_bytes() >= kDeafBytesMin;
                             }
                             if (std::exchange(sent_bytes, sum) != sum) moved = absl::Now();
                             return is_much && absl::Now() > moved + absl::Seconds(2);
                           }))
      << sent_bytes << " bytes" << master_.LogTail();
  scene_.Say(absl::StrCat(sent_bytes / kDeaf >> 10, " KiB of each were taken"));
  ExpectLittleMemory(before_kib, kDeaf, kDeafKib);
  StartProducers();
  ASSERT_NO_FATAL_FAILURE(AwaitSamples(kSamples / 4, "beside writers that take no answers"));
  deaf.clear();
  ASSERT_NO_FATAL_FAILURE(AwaitSamples(kSamples / 8, "after they are gone"));
  End();
}

}  // namespace
}  // namespace stepwell::faults
