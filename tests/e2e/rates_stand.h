// A master whose rates are small, and who asks for calls, from addresses of this machine and with tokens.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "stepwell/v1/token.grpc.pb.h"
#include "tests/e2e/started_agent.h"

namespace stepwell::testing {

using Words = std::vector<std::string>;

class RatesTest : public SpineTest {
 protected:
  grpc::Status ListTrials() {
    const auto stub = v1::QueryService::NewStub(client_->channel());
    grpc::ClientContext context;
    v1::ListTrialsResponse response;
    return stub->ListTrials(&context, v1::ListTrialsRequest(), &response);
  }
  struct Answer {
    std::string code;  // "200"
    std::string head;
    std::string body;
  };
  // From an address of this machine.
  Answer Curl(const std::string& from, const Words& more) {
    const std::string file = scratch_ / absl::StrCat("said-", ++count_);
    Words words = {"/usr/bin/curl", "--silent",    "--show-error", "--max-time", "30",
                   "--interface",   from,          "--output",     file,         "--dump-header",
                   file + ".head",  "--write-out", "%{http_code}"};
    words.insert(words.end(), more.begin(), more.end());
    ChildProcess child;
    child.Start(words, {}, file + ".log");
    EXPECT_EQ(child.Wait(absl::Seconds(60)), "exit 0") << ReadText(file + ".log");
    return {ReadText(file + ".log"), ReadText(file + ".head"), ReadText(file)};
  }
  Answer List(const std::string& from, const Words& more = {}) {
    Words words = {"--json", "{}", Url("/stepwell.v1.QueryService/ListTrials")};
    words.insert(words.end(), more.begin(), more.end());
    return Curl(from, words);
  }
  std::string Url(const std::string& path) const {
    return absl::StrCat(scheme_, "://", master_->http_address(), path);
  }
  // "limit=\"calls\"" of a counter.
  double Counted(const std::string& name, Words more = {}) {
    more.push_back(Url("/metrics?trial=none"));
    for (const absl::string_view line : absl::StrSplit(Curl("127.0.0.9", more).body, '\n')) {
      double value = 0;
      if (absl::StartsWith(line, name + " ") &&
          absl::SimpleAtod(line.substr(name.size() + 1), &value)) {
        return value;
      }
    }
    ADD_FAILURE() << name;
    return -1;
  }

  std::string scheme_ = "http";
  int count_ = 0;
};

// With TLS and the admin's token.
class TokenRatesTest : public RatesTest {
 protected:
  virtual std::string shared() const { return "127.0.0.5"; }
  virtual Words more() const { return {}; }
  void SetUp() override {
    const absl::Time now = absl::Now() - absl::Hours(1);
    const TlsAuthority ca = *TlsAuthority::Make("ca", now, now + absl::Hours(9));
    const TlsPair server =
        *ca.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now, now + absl::Hours(9)});
    Write("ca.pem", ca.own().cert_pem);
    Write("server.pem", server.cert_pem);
    Write("server.key", server.key_pem);
    ca_pem_ = ca.own().cert_pem;
    Words flags = more();
    flags.insert(flags.end(), {"--tls-cert", scratch_ / "server.pem", "--tls-key",
                               scratch_ / "server.key", "--token-file", scratch_ / "token",
                               "--wrong-tokens-per-minute", "20", "--shared-addresses", shared()});
    StartMaster(flags);
    scheme_ = "https";
    std::ifstream(scratch_ / "token") >> token_;
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
  }
  Words Showing(const std::string& token) const {
    return {"--cacert", scratch_ / "ca.pem", "--oauth2-bearer", token};
  }
  Answer With(const std::string& from, const std::string& token) {
    return List(from, Showing(token));
  }
  grpc::Status Ask(const std::shared_ptr<grpc::Channel>& channel, const std::string& token) {
    const auto stub = v1::QueryService::NewStub(channel);
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::ListTrialsResponse response;
    return stub->ListTrials(&context, v1::ListTrialsRequest(), &response);
  }
  // Made by the admin.
  v1::CreateTokenResponse MakeToken(const std::string& grant) {
    const auto stub = v1::TokenService::NewStub(Channel());
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token_);
    v1::CreateTokenRequest request;
    request.set_name("made");
    request.add_grants(grant);
    v1::CreateTokenResponse response;
    const grpc::Status status = stub->CreateToken(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  std::shared_ptr<grpc::Channel> Channel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(master_->grpc_address(),
                                     grpc::SslCredentials({ca_pem_, "", ""}), arguments);
  }

  std::string token_;
  std::string ca_pem_;
};

}  // namespace stepwell::testing
