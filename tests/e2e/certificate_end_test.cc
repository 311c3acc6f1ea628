// A client's certificate that ends while its connection is there: what is open ends with it, whoever is asked for by it or by a
// token beside it, and nothing begins there any more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/tls/openssl_text.h"
#include "tests/e2e/connect_follow.h"
#include "tests/e2e/doors_stand.h"

namespace stepwell::testing {
namespace {

using grpc::StatusCode;
using ::testing::AllOf;
using ::testing::HasSubstr;

// One connection of HTTP that is kept.
class KeptConnection {
 public:
  KeptConnection(const std::string& address, const TlsPair& own)
      : context_(SSL_CTX_new(TLS_client_method())) {
    const OpensslOwned<X509> cert(
        PEM_read_bio_X509(BioOf(own.cert_pem).get(), nullptr, nullptr, nullptr));
    const OpensslOwned<EVP_PKEY> key(
        PEM_read_bio_PrivateKey(BioOf(own.key_pem).get(), nullptr, nullptr, nullptr));
    SSL_CTX_use_certificate(context_.get(), cert.get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());
    connection_.reset(BIO_new_ssl_connect(context_.get()));
    BIO_set_conn_hostname(connection_.get(), address.c_str());
    EXPECT_EQ(BIO_do_connect(connection_.get()), 1);
  }
  // The header of the answer, and what has come of its body.
  std::string Get(const std::string& path) {
    const std::string asked = absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    if (BIO_write(connection_.get(), asked.data(), static_cast<int>(asked.size())) <= 0) return "";
    std::string said(64 << 10, '\0');
    const int got = BIO_read(connection_.get(), said.data(), static_cast<int>(said.size()));
    said.resize(static_cast<std::size_t>(std::max(0, got)));
    return said;
  }

 private:
  const OpensslOwned<SSL_CTX> context_;
  OpensslOwned<BIO> connection_;
};

// No call of these tests is to last as long as it likes where it does not end.
void Bound(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(40));
}

TEST(CertificateEndTest, WhatIsOpenEndsWithTheCertificateAndNothingBegins) {
  DoorsStand stand(AsksCertificates::kYes);
  const std::int64_t run = stand.Record("vision", "run");
  ASSERT_TRUE(stand.Give("dns:brief.lab", {"write:vision"}).ok());
  const std::string token = stand.MakeToken({"write:vision"});
  // All of what follows is to be open by then, also on a busy machine.
  const absl::Time until = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 20);
  const TlsPair own = *stand.ca().Sign(
      {TlsSide::kClient, "brief", {"brief.lab"}, absl::Now() - absl::Minutes(5), until});
  stand.Write("own.pem", own.cert_pem);
  stand.Write("own.key", own.key_pem);
  const auto channel = stand.ChannelAs(own);
  v1::FollowSamplesRequest request;
  request.mutable_trial()->set_trial_id(run);
  const auto query = v1::QueryService::NewStub(channel);
  const auto ingest = v1::IngestService::NewStub(channel);
  grpc::ClientContext follow_context, token_context, ingest_context;
  for (auto* each : {&follow_context, &token_context, &ingest_context}) Bound(*each);
  token_context.AddMetadata("authorization", "Bearer " + token);
  const auto follow = query->FollowSamples(&follow_context, request);
  const auto by_token = query->FollowSamples(&token_context, request);
  v1::FollowSamplesResponse followed;
  ASSERT_TRUE(follow->Read(&followed));
  ASSERT_TRUE(by_token->Read(&followed));
  const auto stream = ingest->StreamChunks(&ingest_context);
  auto open = OpenMessage({.writer = Uuid::Random(), .external_id = "run"});
  open.mutable_open()->set_project("vision");
  ASSERT_TRUE(stream->Write(open));
  v1::StreamChunksResponse answer;
  while (!answer.has_opened()) ASSERT_TRUE(stream->Read(&answer)) << answer.DebugString();
  ConnectFollow over_http({absl::StrCat("https://", stand.server().addresses().http),
                           stand.ca_file(),
                           "",
                           {"--cert", stand.Scratch("own.pem"), "--key", stand.Scratch("own.key")}},
                          "vision", "run", stand.Scratch("followed"));
  ASSERT_TRUE(over_http.WaitFor("cursor", absl::Seconds(5))) << over_http.complaint();
  KeptConnection kept(stand.server().addresses().http, own);
  EXPECT_THAT(kept.Get("/page.json"), HasSubstr("HTTP/1.1 200 "));
  constexpr char kHealth[] = "grpc.health.v1.Health/Check";
  EXPECT_TRUE(DoorsStand::CallOn(channel, kHealth, v1::ListTrialsRequest(), "").status.ok());
  ASSERT_LT(absl::Now(), until) << "all was open while it lived";

  while (follow->Read(&followed)) {
  }
  EXPECT_GE(absl::Now(), until);
  while (by_token->Read(&followed)) {
  }
  while (stream->Read(&answer)) {
  }
  EXPECT_NE(over_http.Wait(absl::Seconds(5)), "still running");
  EXPECT_LT(absl::Now(), until + absl::Seconds(5));
  EXPECT_EQ(follow->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(by_token->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(stream->Finish().error_code(), StatusCode::UNAUTHENTICATED);
  // Its connection is there still.
  const char* list = "stepwell.v1.QueryService/ListTrials";
  for (const std::string& shown : {std::string(), token}) {
    const grpc::Status status =
        DoorsStand::CallOn(channel, list, v1::ListTrialsRequest(), shown).status;
    EXPECT_EQ(status.error_code(), StatusCode::UNAUTHENTICATED);
    EXPECT_THAT(status.error_message(), HasSubstr("the certificate of this client has ended"));
  }
  // gRPC's own, which ask nobody of ours.
  EXPECT_EQ(
      DoorsStand::CallOn(channel, kHealth, v1::ListTrialsRequest(), token).status.error_code(),
      StatusCode::UNAUTHENTICATED);
  // Another one is shown on another connection alone: who keeps asking is told to make one.
  const std::string refused = kept.Get("/page.json");
  EXPECT_THAT(refused, AllOf(HasSubstr("HTTP/1.1 401 "), HasSubstr("Connection: close")));
  EXPECT_EQ(kept.Get("/page.json"), "");
  // Nobody else's grants went.
  EXPECT_TRUE(stand.Call(list, v1::ListTrialsRequest(), token).status.ok());
}

}  // namespace
}  // namespace stepwell::testing
