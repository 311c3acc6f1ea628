// TokenTest: a master with TLS and a token, and what tests of those who show one share.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "tests/e2e/spine.h"
#include "tests/support/child_process.h"

namespace stepwell::testing {

using Words = std::vector<std::string>;

class TokenTest : public SpineTest {
 protected:
  void SetUp() override {
    const TlsPair server = *ca_.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now_, End()});
    Write("ca.pem", ca_.own().cert_pem);
    Write("server.pem", server.cert_pem);
    Write("server.key", server.key_pem);
    StartMaster(Flags());
    std::ifstream(scratch_ / "token") >> token_;
  }
  virtual Words Flags() const {
    return {"--tls-cert",
            scratch_ / "server.pem",
            "--tls-key",
            scratch_ / "server.key",
            "--token-file",
            scratch_ / "token",
            "--wrong-tokens-per-minute",
            "100000"};
  }
  absl::Time End() const { return now_ + absl::Hours(9); }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
  }

  std::shared_ptr<grpc::Channel> Channel() const {
    return grpc::CreateChannel(master_->grpc_address(),
                               grpc::SslCredentials({ca_.own().cert_pem, "", ""}));
  }
  // With an Authorization header, unless it is empty; of an empty message.
  grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                    const std::string& authorization) const {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
    if (!authorization.empty()) context.AddMetadata("authorization", authorization);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    void* tag = nullptr;
    bool ok = false;
    call->StartCall(nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    const grpc::Slice nothing("", 0);
    call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    grpc::Status status;
    call->Finish(&status, nullptr);
    EXPECT_TRUE(queue.Next(&tag, &ok));
    return status;
  }
  std::string Run(const Words& words, const std::map<std::string, std::string>& environment = {}) {
    const std::string log = scratch_ / absl::StrCat("said-", ++count_);
    ChildProcess child;
    child.Start(words, environment, log);
    const std::string ending = child.Wait(absl::Seconds(60));
    std::stringstream text;
    text << std::ifstream(log).rdbuf();
    said_ = text.str();
    return ending;
  }
  static constexpr std::size_t kTextBytes = 86;  // of a token
  // The token that `stepwell WORDS` tells, if it does.
  std::string Command(Words words, const std::string& token) {
    words.insert(words.begin(), BuiltProgram("stepwell"));
    words.insert(words.end(),
                 {"--server", master_->grpc_address(), "--tls-ca", scratch_ / "ca.pem"});
    EXPECT_EQ(Run(words, {{"STEPWELL_TOKEN", token}}), "exit 0") << said_;
    const std::size_t text = said_.find("stepwell_");
    return text == std::string::npos ? "" : said_.substr(text, kTextBytes);
  }
  // Where a `fault_trainer` logs what it records.
  std::string Ledger(const std::string& trial) const { return scratch_ / ("ledger-" + trial); }
  // Each sample that the ledger names is stored, once.
  void ExpectWhole(const std::string& trial, std::size_t steps) {
    std::ifstream lines(Ledger(trial));
    std::size_t logged = 0;
    for (std::string line; std::getline(lines, line);) {
      logged += absl::StartsWith(line, "r faults/checked ") ? 1 : 0;
    }
    EXPECT_GE(logged, steps);
    Command({"admin", "flush"}, token_);
    const std::int64_t trial_id =
        QueryNumber(absl::StrCat("select trial_id from stepwell.trials where external_id = '",
                                 trial, "' and $1 = 0")
                        .c_str(),
                    0);
    const auto stored = Samples(trial_id, "checked");
    std::set<double> values;
    for (const StoredSample& sample : stored) values.insert(sample.value);
    EXPECT_EQ(stored.size(), logged);
    EXPECT_EQ(values.size(), logged);
  }
  // What the status line says.
  std::string Curl(const std::string& path, const Words& more = {}) {
    Words words = {"/usr/bin/curl",
                   "--silent",
                   "--show-error",
                   "--max-time",
                   "30",
                   "--output",
                   "/dev/null",
                   "--write-out",
                   "%{http_code}",
                   "--cacert",
                   scratch_ / "ca.pem",
                   absl::StrCat("https://", master_->http_address(), path)};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(Run(words), "exit 0") << said_;
    return said_;
  }

  const absl::Time now_ = absl::Now() - absl::Hours(1);
  const TlsAuthority ca_ = *TlsAuthority::Make("ca", now_, End());
  std::string token_;
  std::string said_;
  int count_ = 0;
};

}  // namespace stepwell::testing
