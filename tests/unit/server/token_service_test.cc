// TokenGrpcService over a database that hangs.
#include "server/token_service.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/token_text.h"
#include "stepwell/v1/token.grpc.pb.h"
#include "tests/fakes/fake_token_store.h"

namespace stepwell {
namespace {

class TokenServiceTest : public ::testing::Test {
 protected:
  TokenServiceTest() {
    std::ifstream(path_) >> admin_;
    EXPECT_TRUE(loop_.LearnNow().ok());
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.service());
    server_ = builder.BuildAndStart();
    stub_ = v1::TokenService::NewStub(server_->InProcessChannel({}));
  }
  ~TokenServiceTest() override {
    server_->Shutdown();
    unlink(path_.c_str());
  }
  grpc::StatusCode Fetch(const std::string& token = {}) {
    grpc::ClientContext call;
    call.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    call.AddMetadata("authorization", absl::StrCat("Bearer ", token.empty() ? admin_ : token));
    v1::FetchIngestTokenRequest request;
    request.mutable_trial()->set_project("vision");
    request.mutable_trial()->set_external_id("run");
    v1::FetchIngestTokenResponse response;
    return stub_->FetchIngestToken(&call, request, &response).error_code();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "token-service-", getpid());
  FakeTokenStore store_;
  const std::shared_ptr<TokenGuard> guard_ = *TokenGuard::Open(path_, RealClock::Get());
  const AccessControl access_{guard_.get(), store_};
  TokenLoop loop_{{store_, *guard_, RealClock::Get(), [] {}}};
  TokenGrpcService service_{
      {.store = store_, .access = access_, .loop = &loop_, .clock = RealClock::Get()}};
  std::string admin_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::TokenService::Stub> stub_;
};

// As of a job whose ranks all begin at once: each that waits holds a thread of gRPC's.
TEST_F(TokenServiceTest, WhoWaitsForWhatWasFetchedIsBoundedAndOneReadServesAll) {
  constexpr int kRanks = 64;
  constexpr int kMayWait = 16;
  const NewToken other = MakeToken();
  ASSERT_TRUE(store_
                  .Create({.id = other.id,
                           .digest = other.digest,
                           .name = "x",
                           .grants = {"ingest:vision/run"}})
                  .ok());
  ASSERT_TRUE(loop_.LearnNow().ok());
  absl::Notification answers;
  store_.before_fetched_read = [&] { answers.WaitForNotification(); };
  std::atomic<int> refused{0};
  std::atomic<int> served{0};
  std::vector<std::thread> ranks;
  for (int i = 0; i < kRanks; ++i) {
    ranks.emplace_back([&] {
      const grpc::StatusCode code = Fetch();
      if (code == grpc::StatusCode::UNAVAILABLE) ++refused;
      if (code == grpc::StatusCode::OK) ++served;
    });
  }
  for (int i = 0; i < 1000 && refused < kRanks - kMayWait; ++i) {
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(refused, kRanks - kMayWait) << "they come again";
  // Another token's turns are not theirs to take.
  grpc::StatusCode others = grpc::StatusCode::UNKNOWN;
  std::thread another([&] { others = Fetch(other.text); });
  const auto has_turn = [&] {
    const absl::MutexLock lock(&store_.mu);
    return store_.fetched.size() > kMayWait;
  };
  for (int i = 0; i < 1000 && !has_turn(); ++i) absl::SleepFor(absl::Milliseconds(10));
  EXPECT_TRUE(has_turn());
  answers.Notify();
  another.join();
  EXPECT_EQ(others, grpc::StatusCode::OK);
  for (std::thread& rank : ranks) rank.join();
  EXPECT_EQ(served, kMayWait);
  EXPECT_LE(store_.fetched_reads, 2) << "what one has learned the others need not ask for";
}

}  // namespace
}  // namespace stepwell
