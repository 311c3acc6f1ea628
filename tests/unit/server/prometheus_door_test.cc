// What Prometheus is answered where our own services fail, or have more than a page: before services of the
// test's, over real HTTP.
#include "server/http/prometheus_door.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "server/grpc_server.h"
#include "server/http/http_server.h"
#include "server/http/rpc_channel.h"
#include "server/http/trial_scrape.h"
#include "stepwell/v1/query.grpc.pb.h"
#include "tests/unit/server/raw_http.h"

namespace stepwell {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

constexpr std::int64_t kNowUs = 1'700'000'000'000'000;

// Trials 1, 2, ... that run, each with a value of a CPU and one of its training.
class Service final : public v1::QueryService::Service {
 public:
  struct Plan {
    int trial_count = 0;
    int page_trials = 1000;
    // The page that begins with this trial fails; 0 = none.
    std::int64_t bad_page = 0;
    // Of each trial that is asked for by its number.
    v1::TrialState state = v1::TRIAL_STATE_RUNNING;
    // What LatestValues of that trial answers.
    std::map<std::int64_t, grpc::StatusCode> failures = {};
    std::int32_t series_count = 2;
    // LatestValues waits until so many of them wait.
    int company = 0;
  };

  void Set(Plan plan) {
    const absl::MutexLock lock(&mu_);
    plan_ = std::move(plan);
    asked_.clear();
  }
  // Trial and group of each LatestValues.
  std::vector<std::pair<std::int64_t, std::string>> asked() const {
    const absl::MutexLock lock(&mu_);
    return asked_;
  }

  grpc::Status ListTrials(grpc::ServerContext*, const v1::ListTrialsRequest* request,
                          v1::ListTrialsResponse* response) override {
    const absl::MutexLock lock(&mu_);
    const int first = request->page_token().empty() ? 1 : std::stoi(request->page_token());
    if (first == plan_.bad_page) return {grpc::StatusCode::INTERNAL, "no such page"};
    const int last =
        std::min(plan_.trial_count, first + std::min(plan_.page_trials, request->page_size()) - 1);
    for (int id = first; id <= last; ++id) {
      *response->add_trials() = TrialOf(id);
      response->mutable_trials(id - first)->set_series_count(plan_.series_count);
    }
    if (last < plan_.trial_count) response->set_next_page_token(std::to_string(last + 1));
    return grpc::Status::OK;
  }
  grpc::Status GetTrial(grpc::ServerContext*, const v1::GetTrialRequest* request,
                        v1::GetTrialResponse* response) override {
    const absl::MutexLock lock(&mu_);
    *response->mutable_trial() = TrialOf(request->trial().trial_id());
    response->mutable_trial()->set_state(plan_.state);
    return grpc::Status::OK;
  }
  grpc::Status LatestValues(grpc::ServerContext*, const v1::LatestValuesRequest* request,
                            v1::LatestValuesResponse* response) override {
    const absl::MutexLock lock(&mu_);
    const std::int64_t id = request->trial().trial_id();
    const std::string& group = request->selector().metric_group();
    asked_.emplace_back(id, group);
    const auto is_in_company = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
      return asked_.size() >= static_cast<std::size_t>(plan_.company);
    };
    if (!mu_.AwaitWithTimeout(absl::Condition(&is_in_company), absl::Seconds(30))) {
      return {grpc::StatusCode::INTERNAL, "nobody else asks"};
    }
    const auto failure = plan_.failures.find(id);
    if (failure != plan_.failures.end()) return {failure->second, "it fails"};
    response->mutable_completeness()->set_answered_time_us(kNowUs);
    for (const char* has : {"cpu", "training"}) {
      if (!group.empty() && group != has) continue;
      auto& value = *response->add_values();
      value.set_time_us(kNowUs);
      value.set_value(static_cast<double>(id));
      auto& key = *value.mutable_series()->mutable_key();
      key.set_metric_group(has);
      key.set_name("load");
      (*key.mutable_labels())["agent"] = "node-1";
    }
    return grpc::Status::OK;
  }

 private:
  static v1::Trial TrialOf(std::int64_t id) {
    v1::Trial trial;
    trial.set_trial_id(id);
    trial.set_project("default");
    trial.set_external_id(absl::StrCat("t", id));
    trial.set_state(v1::TRIAL_STATE_RUNNING);
    return trial;
  }

  mutable absl::Mutex mu_;
  Plan plan_ ABSL_GUARDED_BY(mu_);
  std::vector<std::pair<std::int64_t, std::string>> asked_ ABSL_GUARDED_BY(mu_);
};

class PrometheusDoorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    grpc_.Register(&service_, v1::QueryService::service_full_name());
    ASSERT_TRUE(grpc_.Bind().ok());
    ASSERT_TRUE(grpc_.Start().ok());
    rpc_.Open(grpc_.InProcessChannel());
    door_.Serve(http_.routes());
    ASSERT_TRUE(http_.Start().ok());
  }
  void TearDown() override {
    grpc_.Stop(SteadyTime::Now());
    rpc_.Stop();
    http_.Stop();
  }
  std::string Get(const std::string& path, const std::string& headers = "") {
    RawHttp client(http_.port());
    EXPECT_TRUE(client.Send(absl::StrCat(
        "GET ", path, " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n", headers, "\r\n")));
    return client.ReadAll();
  }
  // A line of that trial's.
  static std::string ValueOf(int id) {
    return absl::StrCat("\nstepwell_trial_load{project=\"default\",trial=\"t", id,
                        "\",agent=\"node-1\"} ", id, "\n");
  }

  Service service_;
  GrpcServer grpc_{{}};
  RpcChannel rpc_{2};
  PrometheusDoor door_{rpc_, [](MetricFamilies& families) {
                         families.Add({"stepwell_ready", "1 where it is."}, 1);
                       }};
  HttpServer http_{{}};
};

TEST_F(PrometheusDoorTest, ATrialThatFailsHidesNoOther) {
  for (const auto code : {grpc::StatusCode::INTERNAL, grpc::StatusCode::RESOURCE_EXHAUSTED,
                          grpc::StatusCode::DATA_LOSS}) {
    service_.Set({.trial_count = 3, .failures = {{2, code}}});
    const std::string text = Get("/metrics");
    EXPECT_THAT(text, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr(ValueOf(1)),
                            Not(HasSubstr("trial=\"t2\"")), HasSubstr(ValueOf(3))));
    EXPECT_THAT(text, HasSubstr("\nstepwell_trial_metrics_complete 0\n"));
  }
}

TEST_F(PrometheusDoorTest, OfMoreThanAHundredThatRunTheNewestHundredAreTold) {
  service_.Set({.trial_count = 100});
  EXPECT_THAT(Get("/metrics"), AllOf(HasSubstr(ValueOf(1)), HasSubstr(ValueOf(100)),
                                     HasSubstr("\nstepwell_trial_metrics_complete 1\n")));
  service_.Set({.trial_count = 101});
  const std::string text = Get("/metrics");
  EXPECT_THAT(text, AllOf(StartsWith("HTTP/1.1 200"), HasSubstr(ValueOf(1)),
                          HasSubstr(ValueOf(100)), Not(HasSubstr("trial=\"t101\""))));
  EXPECT_THAT(text, HasSubstr("\nstepwell_trial_metrics_complete 0\n"));
  EXPECT_EQ(service_.asked().size(), 100U);
}

TEST_F(PrometheusDoorTest, OneThatWasDeletedMeanwhileIsNoLoss) {
  service_.Set({.trial_count = 3, .failures = {{2, grpc::StatusCode::NOT_FOUND}}});
  EXPECT_THAT(Get("/metrics"), AllOf(HasSubstr(ValueOf(1)), HasSubstr(ValueOf(3)),
                                     HasSubstr("\nstepwell_trial_metrics_complete 1\n")));
}

TEST_F(PrometheusDoorTest, WhereNoneWouldBeAnsweredTheScrapeEndsWithWhatItHas) {
  for (const auto code : {grpc::StatusCode::DEADLINE_EXCEEDED, grpc::StatusCode::UNAVAILABLE,
                          grpc::StatusCode::CANCELLED}) {
    service_.Set({.trial_count = 9, .failures = {{2, code}}});
    EXPECT_THAT(Get("/metrics"), AllOf(HasSubstr("\nstepwell_ready 1\n"), HasSubstr(ValueOf(1)),
                                       Not(HasSubstr("trial=\"t2\"")), HasSubstr(ValueOf(3)),
                                       HasSubstr("\nstepwell_trial_metrics_complete 0\n")));
    EXPECT_EQ(service_.asked().size(), TrialScrape::kTrialsAtOnce) << "those beside it alone";
  }
}

TEST_F(PrometheusDoorTest, OneThatFailsAloneIsNoAnswer) {
  service_.Set({.trial_count = 1, .failures = {{1, grpc::StatusCode::INTERNAL}}});
  EXPECT_THAT(Get("/metrics?trial=1"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("it fails")));
  service_.Set({.trial_count = 1, .failures = {{1, grpc::StatusCode::NOT_FOUND}}});
  EXPECT_THAT(Get("/metrics?trial=1"), StartsWith("HTTP/1.1 404"));
  service_.Set({.trial_count = 1});
  EXPECT_THAT(Get("/metrics?trial=1"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr(ValueOf(1))));
}

TEST_F(PrometheusDoorTest, OneThatEndedIsNoTargetAnyMore) {
  for (const auto state :
       {v1::TRIAL_STATE_COMPLETED, v1::TRIAL_STATE_FAILED, v1::TRIAL_STATE_LOST}) {
    service_.Set({.trial_count = 1, .state = state});
    EXPECT_THAT(Get("/metrics?trial=1"), AllOf(StartsWith("HTTP/1.1 404"), HasSubstr("run"),
                                               Not(HasSubstr("stepwell_trial_info"))))
        << v1::TrialState_Name(state);
    EXPECT_TRUE(service_.asked().empty()) << "nobody asks for its values";
  }
}

TEST_F(PrometheusDoorTest, WhoCannotBeKnownNowIsAskedToComeAgain) {
  PrometheusDoor door(
      rpc_, [](MetricFamilies&) {},
      [](const HttpRequest&) -> absl::StatusOr<bool> {
        return absl::UnavailableError("the database does not answer");
      });
  HttpServer http({});
  door.Serve(http.routes());
  ASSERT_TRUE(http.Start().ok());
  RawHttp client(http.port());
  EXPECT_TRUE(client.Send(
      "GET /metrics?trial=none HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 503"));
  http.Stop();
}

TEST_F(PrometheusDoorTest, AQueryThatCannotBeReadIsNotTakenForNone) {
  service_.Set({.trial_count = 1});
  for (const char* query : {"trial=%7", "trial=%zz", "%=1", "trial=0", "trial=-1", "trial=1x",
                            "tria=1", "trial=", "trial", "trial=1&trial=3", "trial=1&trial=1"}) {
    EXPECT_THAT(Get(absl::StrCat("/metrics?", query)), StartsWith("HTTP/1.1 400")) << query;
  }
  EXPECT_THAT(Get("/metrics?trial=%31"), HasSubstr(ValueOf(1)));
}

// A Prometheus sends neither header.
TEST_F(PrometheusDoorTest, PagesOfOtherSitesMakeNobodyScrape) {
  service_.Set({.trial_count = 1});
  for (const char* path : {"/metrics", "/metrics?trial=1", "/sd"}) {
    for (const char* header : {"Sec-Fetch-Site: cross-site\r\n", "Sec-Fetch-Site: same-site\r\n",
                               "Origin: https://evil.example\r\n", "Origin: null\r\n"}) {
      EXPECT_THAT(Get(path, header), StartsWith("HTTP/1.1 403")) << path << " " << header;
    }
    EXPECT_TRUE(service_.asked().empty());
    EXPECT_THAT(Get(path), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(Get(path, "Sec-Fetch-Site: none\r\n"), StartsWith("HTTP/1.1 200")) << "typed";
    service_.Set({.trial_count = 1});
  }
}

TEST_F(PrometheusDoorTest, SeveralTrialsAreAskedForAtOnceAndToldInTheirOrder) {
  constexpr int kAtOnce = TrialScrape::kTrialsAtOnce;
  service_.Set({.trial_count = 2 * kAtOnce + 1, .company = kAtOnce});
  const std::string text = Get("/metrics");
  EXPECT_THAT(text, HasSubstr("\nstepwell_trial_metrics_complete 1\n"));
  std::size_t before = 0;
  for (int id = 1; id <= 2 * kAtOnce + 1; ++id) {
    const auto at = text.find(ValueOf(id));
    ASSERT_NE(at, std::string::npos) << id;
    EXPECT_GE(at, before);
    before = at;
  }
  EXPECT_EQ(service_.asked().size(), 2U * kAtOnce + 1) << "one call for each of few series";
}

// A training may have 100,000 series of its own.
TEST_F(PrometheusDoorTest, SeriesOfMachinesAloneAreAskedForWhereThereAreMany) {
  service_.Set({.trial_count = 1, .series_count = 100'000});
  const std::string text = Get("/metrics");
  EXPECT_THAT(
      service_.asked(),
      UnorderedElementsAre(std::pair(1, "agent"), std::pair(1, "cpu"), std::pair(1, "disk"),
                           std::pair(1, "gpu"), std::pair(1, "memory"), std::pair(1, "network")));
  // The groups of a trial are of one machine.
  EXPECT_THAT(
      text,
      HasSubstr("\nstepwell_trial_info{project=\"default\",trial=\"t1\",agent=\"node-1\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("stepwell_trial_info{project=\"default\",trial=\"t1\"}")));
}

TEST_F(PrometheusDoorTest, TargetsAreThoseOfAllPages) {
  service_.Set({.trial_count = 5, .page_trials = 2});
  const std::string text = Get("/sd");
  EXPECT_THAT(text, StartsWith("HTTP/1.1 200"));
  for (int id = 1; id <= 5; ++id) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\"__meta_stepwell_trial\":\"t", id, "\"")));
  }
  service_.Set({});
  EXPECT_THAT(Get("/sd"), HasSubstr("\r\n\r\n[]\n"));
}

// Prometheus would drop the targets that a shorter list has not.
TEST_F(PrometheusDoorTest, PartOfTheTargetsIsNoAnswer) {
  service_.Set({.trial_count = 5, .page_trials = 2, .bad_page = 5});
  EXPECT_THAT(Get("/sd"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("no such page")));
}

}  // namespace
}  // namespace stepwell
