// deploy/haproxy/stepwell.cfg: a real haproxy with that file before a real master that takes its certificate alone. What
// clients do goes through it, also what is silent for long; what strangers flood it with does not reach the master.
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>

#include "absl/strings/str_split.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/connect_follow.h"
#include "tests/e2e/error_details.h"
#include "tests/e2e/header_flood.h"
#include "tests/e2e/raw_call.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr std::int64_t kMib = 1 << 20;

// "" where there is none.
std::string FindHaproxy() {
  const char* path = std::getenv("PATH");
  Words folders = absl::StrSplit(path == nullptr ? "" : path, ':');
  folders.push_back("/usr/sbin");
  for (const std::string& folder : folders) {
    const std::string program = folder + "/haproxy";
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
}

// Free when asked.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), bytes), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  close(fd);
  return ntohs(address.sin_port);
}

class FrontProxyTest : public SpineTest {
 protected:
  void SetUp() override {
    haproxy_ = FindHaproxy();
    if (haproxy_.empty()) GTEST_SKIP() << "there is no haproxy";
    std::signal(SIGPIPE, SIG_IGN);
    ASSERT_EQ(
        Run({BuiltProgram("stepwell"), "tls", "init", scratch_ / "certs", "--client", "proxy.lab"}),
        "exit 0")
        << said_;
    Join("proxy.pem", "server");
    Join("client.pem", "client-proxy.lab");
  }
  void StartAll(const Words& more = {}) {
    Words flags = {"--tls-cert",
                   Cert("server.pem"),
                   "--tls-key",
                   Cert("server.key"),
                   "--tls-client-ca",
                   Cert("ca.pem"),
                   "--token-file",
                   scratch_ / "token",
                   "--shared-addresses",
                   "127.0.0.1",
                   "--connections-per-address-max",
                   "4096",
                   "--http-connections-max",
                   "4096"};
    flags.insert(flags.end(), more.begin(), more.end());
    StartMaster(flags);
    std::ifstream(scratch_ / "token") >> token_;
    address_ = absl::StrCat("127.0.0.1:", FreePort());
    // As Debian's unit does: a process that reloads, and one that works.
    proxy_.Start({haproxy_, "-W", "-db", "-f", PROXY_CONFIG},
                 {{"STEPWELL_PROXY_LISTEN", address_},
                  {"STEPWELL_PROXY_CERTIFICATE", scratch_ / "proxy.pem"},
                  {"STEPWELL_PROXY_CLIENT", scratch_ / "client.pem"},
                  {"STEPWELL_PROXY_CA", Cert("ca.pem")},
                  {"STEPWELL_PROXY_GRPC", master_->grpc_address()},
                  {"STEPWELL_PROXY_HTTP", master_->http_address()}},
                 scratch_ / "haproxy.log");
    ASSERT_TRUE(
        Eventually([&] { return Curl("/livez") == "200" || !proxy_.running(); }, absl::Seconds(20)))
        << said_;
    ASSERT_TRUE(proxy_.running()) << ReadText(scratch_ / "haproxy.log");
  }
  // Killed, it would leave who works behind for a while.
  void TearDown() override {
    proxy_.Signal(SIGTERM);
    proxy_.Wait(absl::Seconds(20));
  }
  std::string Cert(const std::string& name) const { return scratch_ / ("certs/" + name); }
  static std::string ReadText(const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  // A certificate and its key, as haproxy wants them.
  void Join(const std::string& name, const std::string& pair) const {
    std::ofstream(scratch_ / name)
        << ReadText(Cert(pair + ".pem")) << ReadText(Cert(pair + ".key"));
  }
  std::string Run(const Words& words, const std::map<std::string, std::string>& environment = {}) {
    const std::string log = scratch_ / absl::StrCat("said-", ++count_);
    ChildProcess child;
    child.Start(words, environment, log);
    const std::string ending = child.Wait(absl::Seconds(60));
    said_ = ReadText(log);
    return ending;
  }
  // Through the proxy; the status, which is 000 where there is no answer.
  std::string Curl(const std::string& path, const Words& more = {}) {
    Words words = {"/usr/bin/curl", "--silent",    "--max-time",   "30",       "--output",
                   "/dev/null",     "--write-out", "%{http_code}", "--cacert", Cert("ca.pem")};
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(absl::StrCat("https://", address_, path));
    Run(words);
    return said_;
  }
  ConnectFollow::Door Door(const Words& more = {}) const {
    return {absl::StrCat("https://", address_), Cert("ca.pem"), token_, more};
  }
  // On a connection of its own, through the proxy.
  std::shared_ptr<grpc::Channel> Channel(const std::string& token) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto ssl = grpc::SslCredentials({ReadText(Cert("ca.pem")), "", ""});
    return grpc::CreateCustomChannel(
        address_, grpc::CompositeChannelCredentials(ssl, grpc::AccessTokenCredentials(token)),
        arguments);
  }
  std::map<std::string, std::string> Variables() const {
    return {{"STEPWELL_SERVER", address_},
            {"STEPWELL_TLS_CA", Cert("ca.pem")},
            {"STEPWELL_TOKEN", token_}};
  }
  static grpc::Status List(const std::shared_ptr<grpc::Channel>& channel,
                           absl::Duration patience = absl::Seconds(20)) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
    v1::ListTrialsResponse response;
    return v1::QueryService::NewStub(channel)->ListTrials(&context, {}, &response);
  }

  // Longer than a test, so that none hangs.
  static std::chrono::system_clock::time_point Patience() {
    return absl::ToChronoTime(absl::Now() + absl::Minutes(2));
  }
  struct Stream {
    explicit Stream(const std::shared_ptr<grpc::Channel>& channel)
        : stub(v1::IngestService::NewStub(channel)) {
      context.set_deadline(Patience());
      both = stub->StreamChunks(&context);
    }
    ~Stream() { context.TryCancel(); }
    // Whether it was opened.
    bool Open(const std::string& trial) {
      v1::StreamChunksResponse answer;
      if (!both->Write(OpenMessage({.writer = writer, .external_id = trial}))) return false;
      while (!answer.has_opened()) {
        if (!both->Read(&answer)) return false;
      }
      return both->Write(DefinitionMessage(writer, {{}}));
    }
    // Whether it was acked.
    bool Send(const std::vector<double>& values) {
      if (!both->Write(ChunkMessage(writer, ++sequence, OneColumn(1, NowUs(), 1000, values)))) {
        return false;
      }
      v1::StreamChunksResponse answer;
      while (!answer.has_ack() || answer.ack().committed_sequence() < sequence) {
        if (!both->Read(&answer)) return false;
      }
      return true;
    }
    const Uuid writer = Uuid::Random();
    std::uint64_t sequence = 0;
    grpc::ClientContext context;
    std::unique_ptr<v1::IngestService::Stub> stub;
    std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
        both;
  };
  struct Follow {
    Follow(const std::shared_ptr<grpc::Channel>& channel, const std::string& trial)
        : stub(v1::QueryService::NewStub(channel)) {
      context.set_deadline(Patience());
      v1::FollowSamplesRequest request;
      request.mutable_trial()->set_external_id(trial);
      request.mutable_trial()->set_project("default");
      reader = stub->FollowSamples(&context, request);
    }
    ~Follow() { context.TryCancel(); }
    // From there on all that is acked comes.
    bool Begin() {
      v1::FollowSamplesResponse first;
      return reader->Read(&first);
    }
    // Reads until a sample has this value; false where the call ends first.
    bool ReadTo(double value) {
      v1::FollowSamplesResponse message;
      while (reader->Read(&message)) {
        for (const auto& series : message.samples()) {
          for (const double each : series.values()) {
            if (each == value) return true;
          }
        }
      }
      return false;
    }
    grpc::ClientContext context;
    std::unique_ptr<v1::QueryService::Stub> stub;
    std::unique_ptr<grpc::ClientReader<v1::FollowSamplesResponse>> reader;
  };

  std::string haproxy_;
  std::string token_;
  std::string address_;  // the proxy's
  std::string said_;
  int count_ = 0;
  ChildProcess proxy_;
};

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
  EXPECT_EQ(Run({haproxy_, "-c", "-f", kDebians, "-f", PROXY_CONFIG}, environment), "exit 0");
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
    EXPECT_LT(flooded.grown_bytes, 128 * kMib);
    EXPECT_LT(flooded.cpu_seconds, 2.5) << "four, where all are handed on";
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
