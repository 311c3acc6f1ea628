// Followers of a trial that read nothing, and then are gone, beside the training that they follow. They cost the master memory
// within its bounds (bounds_watch.cc), and writers nothing.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/faults/checker/bounds.h"
#include "tests/faults/master_client.h"
#include "tests/faults/scene.h"

namespace stepwell::faults {
namespace {

constexpr int kFollowers = 30;
// Of one stream to its client: what the transport takes before it waits, and what the master keeps for it.
constexpr std::int64_t kFollowerKib = 512;
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

TEST(UnreadReadersTest, CostBoundedMemoryAndWritersNothing) {
  Scene scene("unread readers");
  MasterProcess master({.scratch = scene.path("")});
  MasterClient client(master.grpc_address());
  ASSERT_TRUE(master.StartAndWait()) << master.LogTail();
  scene.StartAgent(master.grpc_address());
  scene.StartTrainer(0);
  for (const int rank : {10, 11}) {
    scene.StartRawWriter(rank, master.grpc_address(),
                         {{"--series", "20"}, {"--samples", "50"}, {"--rate", "20"}});
  }
  const auto committed = [&] {
    const auto status = client.Status();
    return status ? status->samples_committed() : 0;
  };
  const auto await_samples = [&](std::uint64_t count, const std::string& when) {
    const std::uint64_t before = committed();
    ASSERT_TRUE(scene.Await(absl::StrCat(count, " samples ", when), absl::Seconds(90),
                            [&] { return committed() >= before + count; }))
        << scene.Logs() << master.LogTail();
  };
  ASSERT_NO_FATAL_FAILURE(await_samples(kSamples / 4, "before"));
  const std::int64_t before_kib = ReadUsage(master.pid(), "serve").memory_kib;
  std::vector<std::unique_ptr<Follower>> followers;
  for (int i = 0; i < kFollowers; ++i) {
    followers.push_back(std::make_unique<Follower>(master.grpc_address()));
    ASSERT_TRUE(followers.back()->Begin()) << master.LogTail();
  }
  ASSERT_NO_FATAL_FAILURE(await_samples(kSamples / 2, "beside readers that read nothing"));
  const std::int64_t after_kib = ReadUsage(master.pid(), "serve").memory_kib;
  scene.Say(absl::StrCat("resident ", before_kib >> 10, " MiB before, ", after_kib >> 10,
                         " MiB with ", kFollowers, " of them"));
  EXPECT_LT(after_kib - before_kib, kFollowers * kFollowerKib);
  followers.clear();
  ASSERT_NO_FATAL_FAILURE(await_samples(kSamples / 8, "after they are gone"));
  Follower late(master.grpc_address());
  EXPECT_TRUE(late.Begin()) << master.LogTail();
  scene.StopProducers(absl::Seconds(60));
  const Verdict verdict = scene.ExpectExact(master, Demand::kRecorded);
  EXPECT_EQ(verdict.declared_count, 0U);
  EXPECT_EQ(master.Stop(), "exit 0") << master.LogTail();
}

}  // namespace
}  // namespace stepwell::faults
