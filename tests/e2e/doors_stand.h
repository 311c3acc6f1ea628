// DoorsStand: a whole master within this process that asks for tokens, and clients that show some: what tests
// of grants share. One for a test suite. Header only.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/tls/tls_authority.h"
#include "server/options.h"
#include "server/server.h"
#include "stepwell/v1/ingest.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "stepwell/v1/token.grpc.pb.h"
#include "tests/e2e/ingest_client.h"
#include "tests/support/child_process.h"
#include "tests/support/scratch_directory.h"

namespace stepwell::testing {

struct Called {
  grpc::Status status;
  std::string bytes;  // of the first message
};

enum class WriterEnds { kOpen, kClosed };
enum class AsksCertificates { kNo, kYes };

class DoorsStand {
 public:
  // `more`: further words for the master.
  explicit DoorsStand(AsksCertificates asks = AsksCertificates::kNo,
                      const std::vector<std::string>& more = {}) {
    const TlsPair own = *ca_.Sign({TlsSide::kServer, "s", {"127.0.0.1"}, now_, End()});
    Write("ca.pem", ca_.own().cert_pem);
    Write("server.pem", own.cert_pem);
    Write("server.key", own.key_pem);
    std::vector<std::string> words = {"--data-dir",
                                      scratch_ / "data",
                                      "--grpc-listen",
                                      "127.0.0.1:0",
                                      "--http-listen",
                                      "127.0.0.1:0",
                                      "--tls-cert",
                                      scratch_ / "server.pem",
                                      "--tls-key",
                                      scratch_ / "server.key",
                                      "--token-file",
                                      scratch_ / "token",
                                      "--wrong-tokens-per-minute",
                                      "100000"};
    if (asks == AsksCertificates::kYes) {
      words.insert(words.end(), {"--tls-client-ca", scratch_ / "ca.pem"});
      stranger_ = *ca_.Sign({TlsSide::kClient, "stranger", {"stranger.lab"}, now_, End()});
    }
    words.push_back("--http-get");  // all doors that there may be
    words.insert(words.end(), more.begin(), more.end());
    const auto parsed = ParseOptions(
        words, [](const std::string&) { return std::nullopt; },
        [](const std::string&) { return std::string(); });
    const auto* options = std::get_if<ParsedOptions>(&parsed);
    EXPECT_NE(options, nullptr);
    if (options == nullptr) return;
    auto started = Server::Start(options->options, [] { return false; });
    EXPECT_TRUE(started.ok()) << started.status();
    if (!started.ok()) return;
    server_ = *std::move(started);
    EXPECT_TRUE(Eventually([&] { return server_->state().ready(); }, absl::Seconds(30)));
    std::ifstream(scratch_ / "token") >> admin_;
    channel_ = grpc::CreateChannel(server_->addresses().grpc, Ssl());
  }
  ~DoorsStand() {
    if (server_ != nullptr) server_->Stop();
  }

  Server& server() { return *server_; }
  const std::string& admin() const { return admin_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  std::string ca_file() const { return scratch_ / "ca.pem"; }
  std::string Scratch(const std::string& name) const { return scratch_ / name; }
  const TlsAuthority& ca() const { return ca_; }
  // Where certificates are asked for, with one that no grants are given to.
  std::shared_ptr<grpc::ChannelCredentials> Ssl() const {
    return grpc::SslCredentials({ca_.own().cert_pem, stranger_.key_pem, stranger_.cert_pem});
  }
  // Its connection shows `own`; its calls no token, or `token`.
  std::shared_ptr<grpc::Channel> ChannelAs(const TlsPair& own) const {
    return grpc::CreateChannel(
        server_->addresses().grpc,
        grpc::SslCredentials({ca_.own().cert_pem, own.key_pem, own.cert_pem}));
  }
  // Its calls show `token`.
  std::shared_ptr<grpc::Channel> ChannelWith(const std::string& token) const {
    return grpc::CreateChannel(
        server_->addresses().grpc,
        grpc::CompositeChannelCredentials(Ssl(), grpc::AccessTokenCredentials(token)));
  }

  // Its text.
  std::string MakeToken(const std::vector<std::string>& grants, int expires_seconds = 0) {
    v1::CreateTokenRequest request;
    request.set_name("test");
    for (const std::string& grant : grants) request.add_grants(grant);
    request.set_expires_after_seconds(expires_seconds);
    v1::CreateTokenResponse response;
    const Called called = Call("stepwell.v1.TokenService/CreateToken", request, admin_);
    EXPECT_TRUE(called.status.ok()) << called.status.error_message();
    EXPECT_TRUE(response.ParseFromString(called.bytes));
    return response.text();
  }
  // Gives grants to a certificate's name. What the master says; the id goes to `id` where that is not null.
  grpc::Status Give(const std::string& certificate, const std::vector<std::string>& grants,
                    std::string* id = nullptr, int expires_seconds = 0) {
    v1::CreateTokenRequest request;
    request.set_name("given");
    request.set_certificate(certificate);
    for (const std::string& grant : grants) request.add_grants(grant);
    request.set_expires_after_seconds(expires_seconds);
    v1::CreateTokenResponse response;
    const Called called = Call("stepwell.v1.TokenService/CreateToken", request, admin_);
    EXPECT_TRUE(response.ParseFromString(called.bytes));
    EXPECT_EQ(response.text(), "");
    if (id != nullptr) *id = response.token().token_id();
    return called.status;
  }
  void Revoke(const std::string& token) { RevokeId(token.substr(9, 12)); }
  void RevokeId(const std::string& id) {
    v1::RevokeTokenRequest request;
    request.set_token_id(id);
    const Called called = Call("stepwell.v1.TokenService/RevokeToken", request, admin_);
    EXPECT_TRUE(called.status.ok()) << called.status.error_message();
  }

  // One message, then half-closed; any kind of method. Without a token where it is empty.
  Called Call(const std::string& method, const google::protobuf::Message& request,
              const std::string& token, absl::Duration patience = absl::Seconds(20)) const {
    return CallOn(channel_, method, request, token, patience);
  }
  static Called CallOn(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                       const google::protobuf::Message& request, const std::string& token,
                       absl::Duration patience = absl::Seconds(20)) {
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + patience));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, "/" + method, &queue);
    const auto wait = [&] {
      void* tag = nullptr;
      bool ok = false;
      return queue.Next(&tag, &ok) && ok;
    };
    const std::string text = request.SerializeAsString();
    const grpc::Slice slice(text);
    const grpc::ByteBuffer bytes(&slice, 1);
    grpc::ByteBuffer first;
    Called called;
    call->StartCall(nullptr);
    bool goes_on = wait();
    if (goes_on) {
      call->WriteLast(bytes, grpc::WriteOptions(), nullptr);
      goes_on = wait();
    }
    if (goes_on) {
      call->Read(&first, nullptr);
      if (wait()) {
        std::vector<grpc::Slice> slices;
        EXPECT_TRUE(first.Dump(&slices).ok());
        for (const auto& each : slices) called.bytes.append(each.begin(), each.end());
      }
    }
    // Streams are left after their first message.
    if (!called.bytes.empty() || !goes_on) {
      grpc::ByteBuffer more;
      call->Read(&more, nullptr);
      if (wait()) context.TryCancel();
    }
    call->Finish(&called.status, nullptr);
    wait();
    if (called.status.error_code() == grpc::StatusCode::CANCELLED && !called.bytes.empty()) {
      called.status = grpc::Status::OK;
    }
    return called;
  }

  struct Answered {
    std::string code;  // "200"
    std::string body;
  };
  Answered Curl(const std::string& path, const std::string& token,
                const std::vector<std::string>& more = {}) {
    const std::string file = scratch_ / absl::StrCat("said-", ++count_);
    std::vector<std::string> words = {
        "/usr/bin/curl", "--silent",     "--show-error", "--max-time", "30", "--output", file,
        "--write-out",   "%{http_code}", "--cacert",     ca_file()};
    if (!token.empty()) words.insert(words.end(), {"--oauth2-bearer", token});
    words.insert(words.end(), more.begin(), more.end());
    words.push_back(absl::StrCat("https://", server_->addresses().http, path));
    ChildProcess child;
    child.Start(words, {}, file + ".log");
    EXPECT_EQ(child.Wait(absl::Seconds(60)), "exit 0") << path << ReadFile(file + ".log");
    return {ReadFile(file + ".log"), ReadFile(file)};
  }
  static std::string ReadFile(const std::string& file) {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  // A trial with one sample, running where its writer stays.
  std::int64_t Record(const std::string& project, const std::string& name,
                      WriterEnds ends = WriterEnds::kOpen) {
    const Uuid writer = Uuid::Random();
    v1::WriteChunksRequest request;
    v1::StreamChunksRequest open = OpenMessage({.writer = writer, .external_id = name});
    open.mutable_open()->set_project(project);
    *request.add_messages() = open;
    *request.add_messages() = DefinitionMessage(writer, {{}});
    *request.add_messages() = ChunkMessage(writer, 1, OneColumn(1, NowUs(), 1000, {1.5}));
    if (ends == WriterEnds::kClosed) *request.add_messages() = CloseMessage(writer, 1);
    v1::WriteChunksResponse response;
    const Called called = Call("stepwell.v1.IngestService/WriteChunks", request, admin_);
    EXPECT_TRUE(called.status.ok()) << called.status.error_message();
    EXPECT_TRUE(response.ParseFromString(called.bytes));
    return response.messages_size() > 0 ? response.messages(0).opened().trial_id() : 0;
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(scratch_ / name) << text;
  }

 private:
  absl::Time End() const { return now_ + absl::Hours(9); }
  const absl::Time now_ = absl::Now() - absl::Hours(1);
  const TlsAuthority ca_ = *TlsAuthority::Make("ca", now_, End());
  ScratchDirectory scratch_;
  TlsPair stranger_;
  std::string admin_;
  std::shared_ptr<grpc::Channel> channel_;
  int count_ = 0;
  std::unique_ptr<Server> server_;
};

}  // namespace stepwell::testing
