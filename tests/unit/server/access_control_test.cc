#include "server/access_control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "server/grants.h"
#include "server/ingest_answers.h"
#include "server/rate_refusal.h"
#include "server/token_text.h"
#include "stepwell/v1/admin.pb.h"
#include "stepwell/v1/query.pb.h"
#include "stepwell/v1/token.pb.h"
#include "stepwell/v1/trace.pb.h"
#include "tests/fakes/fake_token_store.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

template <typename Request>
Request Named(const std::string& project, const std::string& name) {
  Request request;
  request.mutable_trial()->set_project(project);
  request.mutable_trial()->set_external_id(name);
  return request;
}

template <typename Request>
Request Numbered(std::int64_t trial_id) {
  Request request;
  request.mutable_trial()->set_trial_id(trial_id);
  return request;
}

class AccessControlTest : public ::testing::Test {
 protected:
  AccessControlTest() {
    store_.places = {{7, "vision", "run"}, {8, "speech", "run"}, {9, "default", ""}};
  }
  ~AccessControlTest() override { unlink(path_.c_str()); }

  static Caller With(const std::vector<std::string>& grants) {
    const auto holder = std::make_shared<TokenHolder>();
    holder->id = "0123456789ab";
    holder->name = "ci";
    holder->grants = *Grants::Parse(grants);
    return holder;
  }
  template <typename Request>
  absl::StatusCode Code(const std::vector<std::string>& grants, const Request& request) const {
    return access_.Check(With(grants), request).code();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "access-", getpid());
  FakeClock clock_;
  FakeTokenStore store_;
  const std::shared_ptr<TokenGuard> guard_ = *TokenGuard::Open(path_, clock_);
  const AccessControl access_{guard_.get(), store_};
};

constexpr auto kOk = absl::StatusCode::kOk;
constexpr auto kNotFound = absl::StatusCode::kNotFound;
constexpr auto kDenied = absl::StatusCode::kPermissionDenied;

TEST_F(AccessControlTest, DecidesByTheProjectOfTheTrial) {
  const auto by_name = Named<v1::GetTrialRequest>("vision", "run");
  const auto by_number = Numbered<v1::GetTrialRequest>(7);
  const auto removal = Numbered<v1::DeleteTrialRequest>(7);
  const auto removal_by_name = Named<v1::DeleteTrialRequest>("vision", "run");
  const struct {
    const char* grant;
    absl::StatusCode read, remove;
  } rows[] = {
      {"read:vision", kOk, kDenied},
      {"write:vision", kOk, kOk},
      {"read:*", kOk, kDenied},
      {"write:*", kOk, kOk},
      {"admin", kOk, kOk},
      {"read:speech", kNotFound, kNotFound},
      {"write:speech", kNotFound, kNotFound},
      {"ingest:vision/run", kNotFound, kNotFound},
      {"ingest:id:7", kNotFound, kNotFound},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.grant);
    EXPECT_EQ(Code({row.grant}, by_name), row.read);
    EXPECT_EQ(Code({row.grant}, by_number), row.read);
    EXPECT_EQ(Code({row.grant}, removal), row.remove);
    EXPECT_EQ(Code({row.grant}, removal_by_name), row.remove);
  }
}

TEST_F(AccessControlTest, WhatIsHiddenIsNotThere) {
  const Caller caller = With({"read:vision"});
  const auto hidden = Numbered<v1::GetTrialRequest>(8);
  const auto absent = Numbered<v1::GetTrialRequest>(1234);
  const absl::Status of_hidden = access_.Check(caller, hidden);
  EXPECT_EQ(of_hidden.message(), "there is no trial with the id 8");
  EXPECT_EQ(access_.Check(caller, absent).message(), "there is no trial with the id 1234");
  EXPECT_EQ(access_.Check(caller, Named<v1::GetTrialRequest>("speech", "run")),
            absl::NotFoundError("there is no trial 'run' in project 'speech'"));
  // Others may see it: what is remembered for them makes no answer to this one quicker.
  EXPECT_TRUE(access_.Check(With({"read:speech"}), hidden).ok());
  const int asked = store_.place_reads;
  EXPECT_TRUE(access_.Check(With({"read:speech"}), hidden).ok());
  EXPECT_EQ(store_.place_reads, asked) << "from memory";
  EXPECT_EQ(access_.Check(caller, hidden), of_hidden);
  EXPECT_EQ(access_.Check(caller, absent).code(), kNotFound);
  EXPECT_EQ(store_.place_reads, asked + 2) << "each asked the database";
}

TEST_F(AccessControlTest, NamesTheGrantThatIsMissing) {
  const absl::Status denied =
      access_.Check(With({"read:vision"}), Named<v1::ArchiveTrialRequest>("vision", "run"));
  EXPECT_EQ(denied.code(), kDenied);
  EXPECT_EQ(denied.message(),
            "the token 0123456789ab (ci) has no grant write:vision, which ArchiveTrial wants");
  EXPECT_EQ(denied.GetPayload("stepwell/reason"), absl::Cord("GRANT_MISSING"));
  EXPECT_EQ(denied.GetPayload("stepwell/metadata/grant"), absl::Cord("write:vision"));
}

TEST_F(AccessControlTest, OneOfSeveralTrialsThatIsHiddenHidesTheAnswer) {
  v1::CompareTrialsRequest request;
  request.add_trials()->set_trial_id(7);
  request.add_trials()->set_trial_id(8);
  EXPECT_EQ(Code({"read:vision"}, request), kNotFound);
  EXPECT_EQ(Code({"read:vision", "read:speech"}, request), kOk);
  EXPECT_EQ(Code({"read:vision"}, v1::CompareTrialsRequest()), absl::StatusCode::kInvalidArgument);
}

TEST_F(AccessControlTest, MoreTrialsThanAnyAnswerHasAreRefusedBeforeTheyAreLookedFor) {
  v1::CompareTrialsRequest request;
  for (int i = 0; i < 64; ++i) request.add_trials()->set_trial_id(7);
  EXPECT_EQ(Code({"read:vision"}, request), kOk);
  request.add_trials()->set_trial_id(7);
  const int reads_before = store_.place_reads;
  EXPECT_EQ(Code({"read:speech"}, request), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(store_.place_reads, reads_before);
}

TEST_F(AccessControlTest, WhoIngestsNothingTakesNoPlaceOfThoseWhoDo) {
  EXPECT_EQ(access_.CheckIngests(With({"read:*"})).code(), kDenied);
  EXPECT_EQ(access_.CheckIngests(nullptr).code(), absl::StatusCode::kUnauthenticated);
  for (const char* grant : {"ingest:vision/run", "ingest:id:7", "write:vision", "admin"}) {
    EXPECT_TRUE(access_.CheckIngests(With({grant})).ok()) << grant;
  }
}

TEST_F(AccessControlTest, TheMasterAsAWholeIsForThoseWhoReadAll) {
  for (const auto& [grant, status, caps, tokens] :
       {std::tuple{"read:vision", kDenied, kDenied, kDenied},
        {"write:vision", kDenied, kDenied, kDenied},
        {"read:*", kOk, kDenied, kDenied},
        {"write:*", kOk, kDenied, kDenied},
        {"admin", kOk, kOk, kOk}}) {
    SCOPED_TRACE(grant);
    EXPECT_EQ(Code({grant}, v1::GetStatusRequest()), status);
    EXPECT_EQ(Code({grant}, v1::SetCapsRequest()), caps);
    EXPECT_EQ(Code({grant}, v1::CreateTokenRequest()), tokens);
    EXPECT_EQ(Code({grant}, v1::ListTrialsRequest()), kOk) << "answered of what it may read";
  }
}

TEST_F(AccessControlTest, CapsAreToldToWhoReadsTheirPlace) {
  v1::GetCapsRequest all, project, trial, other;
  project.mutable_place()->set_project("vision");
  trial.mutable_place()->mutable_trial()->set_trial_id(7);
  other.mutable_place()->mutable_trial()->set_trial_id(8);
  for (const auto& [grant, of_all, of_project, of_trial, of_other] :
       {std::tuple{"read:vision", kOk, kOk, kOk, kNotFound},
        {"write:speech", kOk, kDenied, kNotFound, kOk},
        {"ingest:vision/run", kDenied, kDenied, kNotFound, kNotFound},
        {"read:*", kOk, kOk, kOk, kOk},
        {"admin", kOk, kOk, kOk, kOk}}) {
    SCOPED_TRACE(grant);
    EXPECT_EQ(Code({grant}, all), of_all);
    EXPECT_EQ(Code({grant}, project), of_project);
    EXPECT_EQ(Code({grant}, trial), of_trial);
    EXPECT_EQ(Code({grant}, other), of_other);
  }
}

TEST_F(AccessControlTest, AFlushOfAllIsTheMasters) {
  v1::FlushRequest request;
  EXPECT_EQ(Code({"write:*"}, request), kDenied);
  EXPECT_EQ(Code({"admin"}, request), kOk);
  request.set_trial_id(7);
  EXPECT_EQ(Code({"write:vision"}, request), kOk);
  EXPECT_EQ(Code({"read:vision"}, request), kDenied);
  EXPECT_EQ(Code({"write:speech"}, request), kNotFound);
  request.set_trial_id(-7);
  EXPECT_EQ(Code({"write:vision"}, request), kDenied);
}

TEST_F(AccessControlTest, WhatHasNoRuleIsForNobody) {
  EXPECT_EQ(Code({"admin"}, v1::Trial()), kDenied);
  EXPECT_EQ(access_.Check(nullptr, v1::ListTrialsRequest()).code(),
            absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(access_.CheckOpen(nullptr, {.external_id = "run"}).code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(AccessControlTest, AWriterOpensWhatItsTokenIngests) {
  const TrialSelector named{.project = "vision", .external_id = "run"};
  const TrialSelector future{.project = "vision", .external_id = "next"};
  const TrialSelector numbered{.trial_id = 7};
  const TrialSelector new_number{.trial_id = 77};
  const TrialSelector unknown{.trial_id = 1'000'000'000};
  const struct {
    const char* grant;
    bool named, future, numbered, new_number;
  } rows[] = {
      {"ingest:vision/run", true, false, true, false},
      {"ingest:vision/next", false, true, false, false},
      {"ingest:id:7", true, false, true, false},
      {"ingest:id:77", false, false, false, true},
      {"write:vision", true, true, true, false},
      {"write:default", false, false, false, true},
      {"read:vision", false, false, false, false},
      {"read:*", false, false, false, false},
      {"write:*", true, true, true, true},
      {"admin", true, true, true, true},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.grant);
    const Caller caller = With({row.grant});
    EXPECT_EQ(access_.CheckOpen(caller, named).ok(), row.named);
    EXPECT_EQ(access_.CheckOpen(caller, future).ok(), row.future);
    EXPECT_EQ(access_.CheckOpen(caller, numbered).ok(), row.numbered);
    EXPECT_EQ(access_.CheckOpen(caller, new_number).ok(), row.new_number);
  }
  // Whether there is such a trial or not.
  const Caller other = With({"write:speech"});
  EXPECT_EQ(access_.CheckOpen(other, numbered).message(),
            "the token 0123456789ab (ci) has no grant ingest:id:7, which this writer wants");
  EXPECT_EQ(access_.CheckOpen(other, unknown).message(),
            "the token 0123456789ab (ci) has no grant ingest:id:1000000000, which this writer "
            "wants");
  EXPECT_EQ(access_.CheckOpen(other, named).code(), kDenied);
  EXPECT_EQ(access_.CheckOpen(other, future).code(), kDenied);
}

TEST_F(AccessControlTest, ATraceIsIngestedWithItsTrial) {
  const auto* rule = FindRule(*v1::UploadTraceRequest::descriptor());
  const auto check = [&](const char* grant, const v1::TraceUpload& upload) {
    return access_.CheckAs(rule, With({grant}), upload).code();
  };
  const auto named = Named<v1::TraceUpload>("vision", "run");
  const auto numbered = Numbered<v1::TraceUpload>(7);
  EXPECT_EQ(check("write:speech", Numbered<v1::TraceUpload>(1234)), kDenied);
  for (const auto& upload : {named, numbered}) {
    EXPECT_EQ(check("ingest:vision/run", upload), kOk);
    EXPECT_EQ(check("ingest:id:7", upload), kOk);
    EXPECT_EQ(check("write:vision", upload), kOk);
    EXPECT_EQ(check("read:vision", upload), kDenied);
    // An agent keeps what is denied, and gives up what is not there.
    EXPECT_EQ(check("ingest:vision/next", upload), kDenied);
    EXPECT_EQ(check("write:speech", upload), kDenied);
  }
}

TEST_F(AccessControlTest, ADatabaseThatDoesNotAnswerOpensNothing) {
  store_.status = absl::UnavailableError("connection refused");
  EXPECT_EQ(Code({"read:vision"}, Numbered<v1::GetTrialRequest>(7)),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(access_.CheckOpen(With({"ingest:vision/run"}), {.trial_id = 7}).code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(Code({"read:vision"}, Named<v1::GetTrialRequest>("vision", "run")), kOk)
      << "nothing to ask";
}

TEST_F(AccessControlTest, OneTokensLookUpsLeaveHalfOfTheTurnsToOthers) {
  absl::Notification answers;
  store_.before_place_read = [&] { answers.WaitForNotificationWithTimeout(absl::Seconds(30)); };
  const Caller greedy = With({"read:vision"});
  const auto ask = [&](const Caller& caller) {
    return access_.Check(caller, Numbered<v1::GetTrialRequest>(1234));
  };
  std::vector<std::thread> asking;
  for (int i = 0; i < 4; ++i)
    asking.emplace_back([&] { EXPECT_EQ(ask(greedy).code(), kNotFound); });
  while (store_.place_reads < 4) absl::SleepFor(absl::Milliseconds(1));
  const absl::Status refused = ask(greedy);
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("limit 8, of one token 4"));
  EXPECT_EQ(refused.GetPayload("stepwell/reason"), absl::Cord("LOOK_UPS_UNDER_WAY"));
  EXPECT_EQ(RetryDelayOf(refused), absl::Seconds(1));
  const Complaint of_writer = TokenComplaint(refused);
  EXPECT_EQ(of_writer.code, absl::StatusCode::kUnavailable) << "its agent comes again";
  EXPECT_EQ(of_writer.reason, "TOKEN_NOT_LOOKED_UP") << "and has used up nothing";
  const auto other = std::make_shared<TokenHolder>();
  other->id = "ba9876543210";
  other->grants = *Grants::Parse({"read:vision"});
  std::thread another([&] { EXPECT_EQ(ask(other).code(), kNotFound); });
  for (int i = 0; i < 5000 && store_.place_reads < 5; ++i) absl::SleepFor(absl::Milliseconds(1));
  EXPECT_EQ(store_.place_reads, 5) << "another token's has its turn";
  answers.Notify();
  for (std::thread& each : asking) each.join();
  another.join();
  EXPECT_EQ(ask(greedy).code(), kNotFound);
}

TEST_F(AccessControlTest, WhereNobodyIsAskedAllIsAllowedAndNothingIsLookedUp) {
  const AccessControl open(nullptr, store_);
  EXPECT_FALSE(open.asks());
  EXPECT_TRUE(open.Check(nullptr, Numbered<v1::DeleteTrialRequest>(8)).ok());
  EXPECT_TRUE(open.CheckOpen(nullptr, {.trial_id = 7}).ok());
  EXPECT_EQ(*open.Identify("Bearer nonsense"), nullptr);
  EXPECT_EQ(store_.place_reads, 0);
}

TEST_F(AccessControlTest, ARequestThatNamesNoTrialIsToldSo) {
  const absl::Status told = access_.Check(With({"read:vision"}), v1::GetTrialRequest());
  EXPECT_EQ(told.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(told.message()), HasSubstr("trial is missing"));
}

}  // namespace
}  // namespace stepwell
