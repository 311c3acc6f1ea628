// Two masters of one database, each with the same file of the admin's token: what is revoked at one ends what the other let in.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

#include "absl/strings/ascii.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/e2e/connect_follow.h"
#include "tests/e2e/token_stand.h"

namespace stepwell::testing {
namespace {

using ::testing::HasSubstr;

class TwoMastersTokensTest : public TokenTest {
 protected:
  void SetUp() override {
    TokenTest::SetUp();
    Words flags = Flags();
    flags.push_back("--master-id=second");
    second_ = std::make_unique<MasterProcess>(
        MasterProcess::Options{scratch_.path(), "second", master_->database_url(), flags});
    second_->Start({});
    ASSERT_TRUE(Eventually([&] { return Tell(*second_, {"list"}) == "exit 0"; }, absl::Seconds(60)))
        << said_ << second_->LogTail();
  }
  // `stepwell token WORDS` to one of them; what it says is in said_.
  std::string Tell(const MasterProcess& master, Words words, const std::string& token = "") {
    words.insert(words.begin(), {BuiltProgram("stepwell"), "token"});
    words.insert(words.end(), {"--server", master.grpc_address()});
    return Run(words, {{"STEPWELL_TLS_CA", scratch_ / "ca.pem"},
                       {"STEPWELL_TOKEN", token.empty() ? token_ : token}});
  }
  // Its text.
  std::string Make(const MasterProcess& master, const std::string& name) {
    EXPECT_EQ(Tell(master, {"create", name, "--grant", "write:default"}), "exit 0") << said_;
    return TextIn(said_);
  }
  static std::string TextIn(const std::string& said) {
    const auto at = said.find("stepwell_");
    EXPECT_NE(at, std::string::npos) << said;
    return at == std::string::npos ? "" : said.substr(at, said.find_first_of(" \n", at) - at);
  }
  static std::string IdOf(const std::string& token) { return token.substr(9, 12); }
  grpc::StatusCode ListAt(const MasterProcess& master, const std::string& token) const {
    const auto channel = grpc::CreateChannel(master.grpc_address(),
                                             grpc::SslCredentials({ca_.own().cert_pem, "", ""}));
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(20)));
    v1::ListTrialsResponse response;
    return v1::QueryService::NewStub(channel)->ListTrials(&context, {}, &response).error_code();
  }

  struct Stream {
    Stream(const std::shared_ptr<grpc::Channel>& channel, const std::string& token)
        : stub(v1::IngestService::NewStub(channel)) {
      context.AddMetadata("authorization", "Bearer " + token);
      context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
      both = stub->StreamChunks(&context);
    }
    bool Open() {
      v1::StreamChunksResponse answer;
      if (!both->Write(OpenMessage({.writer = writer, .external_id = "run"}))) return false;
      while (!answer.has_opened()) {
        if (!both->Read(&answer)) return false;
      }
      return true;
    }
    grpc::Status End() {
      v1::StreamChunksResponse answer;
      while (both->Read(&answer)) {
      }
      return both->Finish();
    }
    const Uuid writer = Uuid::Random();
    grpc::ClientContext context;
    std::unique_ptr<v1::IngestService::Stub> stub;
    std::unique_ptr<grpc::ClientReaderWriter<v1::StreamChunksRequest, v1::StreamChunksResponse>>
        both;
  };

  std::unique_ptr<MasterProcess> second_;
};

TEST_F(TwoMastersTokensTest, WhatOneRevokesEndsWhatTheOtherLetIn) {
  const std::string token = Make(*master_, "wide");
  ASSERT_EQ(Tell(*master_, {"fetch", "--trial", "default/run"}, token), "exit 0") << said_;
  const std::string fetched = TextIn(said_);
  // At the one that owns the database: an agent's stream, one of a fetched token, and followers on both ports.
  Stream stream(Channel(), token);
  Stream of_fetched(Channel(), fetched);
  ASSERT_TRUE(stream.Open() && of_fetched.Open()) << master_->LogTail();
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Bearer " + token);
  v1::FollowSamplesRequest request;
  request.mutable_trial()->set_project("default");
  request.mutable_trial()->set_external_id("run");
  const auto query = v1::QueryService::NewStub(Channel());
  const auto follow = query->FollowSamples(&context, request);
  v1::FollowSamplesResponse followed;
  ASSERT_TRUE(follow->Read(&followed));
  ConnectFollow over_http(
      {absl::StrCat("https://", master_->http_address()), scratch_ / "ca.pem", token}, "default",
      "run", scratch_ / "followed");
  ASSERT_TRUE(over_http.WaitFor("cursor")) << over_http.complaint();

  ASSERT_EQ(Tell(*second_, {"revoke", IdOf(token)}), "exit 0") << said_;
  const absl::Time revoked = absl::Now();
  while (follow->Read(&followed)) {
  }
  EXPECT_EQ(follow->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(stream.End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(of_fetched.End().error_code(), grpc::StatusCode::UNAUTHENTICATED) << "its maker ended";
  EXPECT_EQ(over_http.Wait(absl::Seconds(20)), "exit 0") << over_http.complaint();
  EXPECT_THAT(over_http.text(), HasSubstr("\"code\":\"unauthenticated\""));
  EXPECT_LT(absl::Now() - revoked, absl::Seconds(5));
  EXPECT_EQ(ListAt(*master_, token), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(ListAt(*master_, fetched), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(TwoMastersTokensTest, WhatTheOwnerRevokesOpensNothingAtTheOther) {
  const std::string token = Make(*second_, "other");
  EXPECT_TRUE(Eventually([&] { return ListAt(*master_, token) == grpc::StatusCode::OK; },
                         absl::Seconds(10)));
  ASSERT_EQ(ListAt(*second_, token), grpc::StatusCode::OK) << second_->LogTail();
  ASSERT_EQ(Tell(*master_, {"revoke", IdOf(token)}), "exit 0") << said_;
  EXPECT_EQ(ListAt(*master_, token), grpc::StatusCode::UNAUTHENTICATED) << "at once";
  EXPECT_TRUE(
      Eventually([&] { return ListAt(*second_, token) == grpc::StatusCode::UNAUTHENTICATED; },
                 absl::Seconds(5)));
}

// The file of the one, and what it opens, is not the other's: that is said, with whose the other one is.
TEST_F(TwoMastersTokensTest, AMasterThatMadeAFileOfItsOwnIsTold) {
  EXPECT_EQ(second_->CountInLog("token_is_this_masters_alone"), 0) << "it has the same file";
  EXPECT_EQ(master_->CountInLog("token_is_this_masters_alone"), 0) << "nobody was before it";
  const std::string file = scratch_ / "token-of-third";
  Words flags = Flags();
  std::replace(flags.begin(), flags.end(), std::string(scratch_ / "token"), file);
  flags.push_back("--master-id=third");
  MasterProcess third({scratch_.path(), "third", master_->database_url(), flags});
  third.Start({});
  ASSERT_TRUE(Eventually([&] { return third.CountInLog("standing_by") > 0; }, absl::Seconds(60)))
      << third.LogTail();
  absl::SleepFor(absl::Seconds(2));
  EXPECT_EQ(third.CountInLog("token_is_this_masters_alone file=" + file), 1) << third.LogTail();
  third.Kill();
  // The file is there now, and may be a copy for all it knows.
  third.Start({});
  ASSERT_TRUE(Eventually([&] { return third.CountInLog("standing_by") > 1; }, absl::Seconds(60)));
  EXPECT_EQ(third.CountInLog("token_is_this_masters_alone"), 1);
}

}  // namespace
}  // namespace stepwell::testing
