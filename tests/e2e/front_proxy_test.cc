// What goes through the proxy of deploy/haproxy: what clients do, also what is silent for long; what strangers flood it with does
// not reach the master.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tests/e2e/error_details.h"
#include "tests/e2e/front_proxy.h"
#include "tests/e2e/header_flood.h"
#include "tests/e2e/raw_call.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kMib = 1 << 20;
// A flood of resets took 28 MiB and 1.5 s of processor of the master, and four seconds where all were handed on; with what
// a sanitizer keeps of freed memory and looks at, 178 MiB and 3.0 s.
#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kResetsGrownMax = 256 * kMib;
constexpr double kResetsCpuMax = 4.5;
#else
constexpr std::int64_t kResetsGrownMax = 128 * kMib;
constexpr double kResetsCpuMax = 2.5;
#endif

TEST_F(FrontProxyTest, CallsCommandsAgentsAndThePageGoThroughIt) {
  StartAll();
  EXPECT_EQ(Health(Channel(token_)), "SERVING");
  const grpc::Status stranger = List(Channel("stepwell_000000000000_" + std::string(64, '0')));
  EXPECT_EQ(stranger.error_code(), grpc::StatusCode::UNAUTHENTICATED) << stranger.error_message();
  EXPECT_EQ(Curl("/"), "401");
  EXPECT_EQ(Curl("/", {"--oauth2-bearer", token_}), "200");
  EXPECT_EQ(Curl("/metrics", {"--oauth2-bearer", token_, "--http1.1"}), "200");
  EXPECT_EQ(Curl("/metrics", {"--oauth2-bearer", token_, "--header", "Host: evil.example"}), "403");
  // Who goes around it has no certificate.
  const auto ssl = grpc::SslCredentials({ReadText(Cert("ca.pem")), "", ""});
  EXPECT_FALSE(List(grpc::CreateChannel(master_->grpc_address(),
                                        grpc::CompositeChannelCredentials(
                                            ssl, grpc::AccessTokenCredentials(token_))),
                    absl::Seconds(2))
                   .ok());

  auto environment = Variables();
  environment["STEPWELL_AGENT"] = BuiltProgram("stepwell");
  environment["STEPWELL_AGENT_IDLE_EXIT"] = "1";
  EXPECT_EQ(Run({BuiltProgram("fault_trainer"), "--spool-dir", scratch_ / "spool", "--log",
                 scratch_ / "ledger", "--steps", "50", "--rate", "2000", "--trial", "proxied",
                 "--close-wait-ms", "60000"},
                environment),
            "exit 0")
      << said_;
  EXPECT_EQ(Run({BuiltProgram("stepwell"), "trials"}, Variables()), "exit 0") << said_;
  EXPECT_THAT(said_, HasSubstr("proxied"));
}

// A minute is what proxies give by default, and more than this one gives anything but a stream.
TEST_F(FrontProxyTest, StreamsThatAreSilentForLongAreNotCut) {
  StartAll();
  Stream stream(Channel(token_));
  ASSERT_TRUE(stream.Open("silent")) << master_->LogTail();
  // Keeps the trial alive, to which nobody else would belong for a minute.
  Stream heart(Channel(token_));
  ASSERT_TRUE(heart.Open("silent"));
  Follow follow(Channel(token_), "silent");
  ConnectFollow over_http(Door(), "default", "silent", scratch_ / "followed");
  ASSERT_TRUE(follow.Begin() && over_http.WaitFor("cursor")) << over_http.complaint();
  v1::StreamChunksRequest beat;
  beat.mutable_heartbeat()->set_writer(heart.writer.ToBytes());
  for (int second = 0; second < 65; second += 5) {
    absl::SleepFor(absl::Seconds(5));
    ASSERT_TRUE(heart.both->Write(beat));
  }
  ASSERT_TRUE(stream.Send({2.5})) << stream.both->Finish().error_message();
  EXPECT_TRUE(follow.ReadTo(2.5)) << follow.reader->Finish().error_message();
  EXPECT_TRUE(over_http.WaitFor("\"values\":[2.5]")) << over_http.complaint();
  EXPECT_TRUE(over_http.running());
}

TEST_F(FrontProxyTest, ReloadedItShowsItsRenewedCertificateAndEndsNoStream) {
  StartAll();
  Stream stream(Channel(token_));
  ASSERT_TRUE(stream.Open("reloaded"));
  Follow follow(Channel(token_), "reloaded");
  ConnectFollow over_http(Door(), "default", "reloaded", scratch_ / "followed");
  ASSERT_TRUE(follow.Begin() && over_http.WaitFor("cursor")) << over_http.complaint();
  // One that is told from the one before: of a CA that nobody here knows.
  ASSERT_EQ(Run({BuiltProgram("stepwell"), "tls", "init", scratch_ / "certs/other"}), "exit 0");
  Join("proxy.pem", "other/server");
  ASSERT_EQ(Curl("/livez"), "200");
  proxy_.Signal(SIGUSR2);
  EXPECT_TRUE(Eventually([&] { return Curl("/livez") == "000"; }, absl::Seconds(20))) << said_;
  EXPECT_TRUE(stream.Send({2.5}));
  EXPECT_TRUE(follow.ReadTo(2.5));
  EXPECT_TRUE(over_http.WaitFor("\"values\":[2.5]")) << over_http.complaint();
  EXPECT_TRUE(over_http.running());
}

// What stands in /etc/haproxy beside it: as whom it runs, where it logs.
TEST_F(FrontProxyTest, ItStandsBesideTheFileOfDebiansPackage) {
  constexpr char kDebians[] = "/etc/haproxy/haproxy.cfg";
  if (access(kDebians, R_OK) != 0) GTEST_SKIP() << "there is no " << kDebians;
  const std::map<std::string, std::string> environment = {
      {"STEPWELL_PROXY_CERTIFICATE", scratch_ / "proxy.pem"},
      {"STEPWELL_PROXY_CLIENT", scratch_ / "client.pem"},
      {"STEPWELL_PROXY_CA", Cert("ca.pem")}};
  EXPECT_EQ(Run({haproxy_, "-c", "-f", kDebians, "-f", kProxyConfig}, environment), "exit 0");
  EXPECT_EQ(said_, "Configuration file is valid\n") << "without a warning";
}

// Of a client that hangs up the master hears, though nothing moves on the stream: a place that is left is free.
TEST_F(FrontProxyTest, WhoHangsUpLeavesItsPlace) {
  StartAll({"--follows-max", "8"});  // half of which are one token's
  Stream stream(Channel(token_));
  ASSERT_TRUE(stream.Open("left"));
  ASSERT_TRUE(stream.Send({1.5}));
  for (int time = 0; time < 5; ++time) {
    // One that is let go of before it is answered.
    { const Follow unheard(Channel(token_), "left"); }
    EXPECT_TRUE(
        Eventually([&] { return Follow(Channel(token_), "left").Begin(); }, absl::Seconds(10)))
        << time;
    EXPECT_TRUE(Eventually(
        [&] {
          ConnectFollow over_http(Door(), "default", "left",
                                  scratch_ / absl::StrCat("left-", ++count_));
          return over_http.WaitFor("cursor", absl::Seconds(2));
        },
        absl::Seconds(10)))
        << time;
  }
}

TEST_F(FrontProxyTest, AFloodOfHeadersEndsThereWhileOthersAreServed) {
  StartAll();
  Stream stream(Channel(token_));
  ASSERT_TRUE(stream.Open("flooded"));
  ASSERT_TRUE(stream.Send({0}));
  std::atomic<bool> is_over{false};
  std::vector<Flooded> floods(4);
  std::vector<std::thread> attackers;
  for (Flooded& flooded : floods) {
    attackers.emplace_back(
        [&] { flooded = FloodHeaders({address_}, master_->pid(), 64 * kMib, absl::Seconds(20)); });
  }
  std::thread watch([&] {
    for (std::thread& each : attackers) each.join();
    is_over = true;
  });
  int served = 0;
  absl::Duration longest = absl::ZeroDuration();
  do {
    const absl::Time begin = absl::Now();
    EXPECT_TRUE(stream.Send({1.5}));
    EXPECT_TRUE(List(Channel(token_)).ok());
    longest = std::max(longest, absl::Now() - begin);
    ++served;
  } while (!is_over);
  watch.join();
  EXPECT_LT(longest, absl::Seconds(10)) << served;
  for (const Flooded& flooded : floods) {
    EXPECT_TRUE(flooded.ended);
    EXPECT_LT(flooded.taken_bytes, 2 * kMib) << "no more than buffers on the way hold";
    EXPECT_LT(flooded.grown_bytes, 16 * kMib) << "of the master";
  }
  EXPECT_TRUE(proxy_.running());
}

// Opened and reset at once, by a stranger and by who may read: what one address may begin is bounded, and the rest is not
// handed on.
TEST_F(FrontProxyTest, AFloodOfResetsCostsTheMasterLittleWhileOthersAreServed) {
  StartAll();
  ASSERT_EQ(Run({BuiltProgram("stepwell"), "token", "create", "reader", "--grant", "read:*"},
                Variables()),
            "exit 0")
      << said_;
  const auto begin = said_.find("stepwell_");
  ASSERT_NE(begin, std::string::npos) << said_;
  const std::string reader = said_.substr(begin, said_.find_first_of(" \n", begin) - begin);
  Stream stream(Channel(token_));
  ASSERT_TRUE(stream.Open("flooded"));
  for (const std::string& token : {reader, std::string()}) {
    SCOPED_TRACE(token.empty() ? "a stranger" : "who may read");
    Flooded flooded;
    int count = 0;
    std::atomic<bool> is_over{false};
    std::thread attacker([&] {
      flooded = FloodResets({address_}, master_->pid(),
                            CallBlock("/stepwell.v1.QueryService/FollowSamples", token), 16 * kMib,
                            absl::Seconds(20), count);
      is_over = true;
    });
    absl::Duration longest = absl::ZeroDuration();
    do {
      const absl::Time since = absl::Now();
      EXPECT_TRUE(stream.Send({1.5}));
      longest = std::max(longest, absl::Now() - since);
    } while (!is_over);
    attacker.join();
    std::printf("%d calls reset; the longest wait of another client was %s\n", count,
                absl::FormatDuration(longest).c_str());
    EXPECT_GT(count, 20'000);
    EXPECT_LT(longest, absl::Seconds(10));
    EXPECT_LT(flooded.grown_bytes, kResetsGrownMax);
    EXPECT_LT(flooded.cpu_seconds, kResetsCpuMax);
  }
  EXPECT_TRUE(stream.Send({2.5}));
}

// One that takes nothing fills its own connection to the master, and nobody else's.
TEST_F(FrontProxyTest, AClientThatTakesNothingHoldsUpNobodyElse) {
  StartAll();
  Stream stream(Channel(token_));
  ASSERT_TRUE(stream.Open("heavy"));
  const std::vector<double> many(20'000, 0.1);
  ASSERT_TRUE(stream.Send(many));
  std::vector<std::unique_ptr<Follow>> stuck;
  for (int at = 0; at < 3; ++at)
    stuck.push_back(std::make_unique<Follow>(Channel(token_), "heavy"));
  // Far more than windows and buffers on the way hold.
  for (int at = 0; at < 100; ++at) ASSERT_TRUE(stream.Send(many)) << at;
  for (int at = 0; at < 5; ++at) {
    EXPECT_TRUE(List(Channel(token_), absl::Seconds(5)).ok());
    Follow other(Channel(token_), "heavy");
    EXPECT_TRUE(other.Begin());
  }
}

// The master sees one address for all, which is told so; here each has its own count.
TEST_F(FrontProxyTest, ItCountsWhatAnAddressMayDo) {
  StartAll();
  const auto guessing = Channel("stepwell_000000000000_" + std::string(64, '0'));
  const auto good = Channel(token_);
  ASSERT_TRUE(List(good).ok());
  grpc::Status status;
  int guesses = 0;
  do {
    status = List(guessing);
    ++guesses;
  } while (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && guesses < 3000);
  EXPECT_GT(guesses, 900);
  ASSERT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED)
      << guesses << status.error_message();
  const auto retry = DetailOf<google::rpc::RetryInfo>(status);
  ASSERT_TRUE(retry.has_value());
  EXPECT_EQ(retry->retry_delay().seconds(), 10);
  EXPECT_EQ(List(good).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << "one address";
  EXPECT_EQ(Curl("/metrics", {"--oauth2-bearer", token_}), "429");
  EXPECT_EQ(Curl("/metrics", {"--oauth2-bearer", token_, "--interface", "127.0.0.9"}), "200");
  EXPECT_TRUE(Eventually([&] { return List(good).ok(); }, absl::Seconds(30))) << "later";
}

}  // namespace
}  // namespace stepwell::testing
