// FrontProxyTest: deploy/haproxy/stepwell.cfg: a real haproxy with that file before a real master that takes its certificate
// alone, and clients that go through it. PROXY_CONFIG names the file. Header only.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/connect_follow.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"
#include "tests/support/loopback.h"
#include "tests/support/places/places.h"

namespace stepwell::testing {

inline const std::string kProxyConfig = SourcePlace("deploy/haproxy/stepwell.cfg");

using Words = std::vector<std::string>;

// "" where there is none.
inline std::string FindHaproxy() {
  const char* path = std::getenv("PATH");
  Words folders = absl::StrSplit(path == nullptr ? "" : path, ':');
  folders.push_back("/usr/sbin");
  for (const std::string& folder : folders) {
    const std::string program = folder + "/haproxy";
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return "";
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
    port_ = FreePort();
    address_ = absl::StrCat("127.0.0.1:", port_);
    std::ofstream(scratch_ / "log.cfg") << "global\n    log stdout format raw local0\n";
    // As Debian's unit does: a process that reloads, and one that works.
    proxy_.Start({haproxy_, "-W", "-db", "-f", scratch_ / "log.cfg", "-f", kProxyConfig},
                 {{"STEPWELL_PROXY_LISTEN", address_},
                  {"STEPWELL_PROXY_CERTIFICATE", scratch_ / "proxy.pem"},
                  {"STEPWELL_PROXY_CLIENT", scratch_ / "client.pem"},
                  {"STEPWELL_PROXY_CA", Cert("ca.pem")},
                  {"STEPWELL_PROXY_INSIDE", absl::StrCat("abns@stepwell-proxy-", port_)},
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
  int port_ = 0;         // the proxy's
  std::string address_;  // likewise
  std::string said_;
  int count_ = 0;
  ChildProcess proxy_;
};

}  // namespace stepwell::testing
