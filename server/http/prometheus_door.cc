#include "server/http/prometheus_door.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "server/http/rpc_unary.h"
#include "server/http/trial_scrape.h"
#include "server/http/url_text.h"
#include "server/trial_metrics.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {
namespace {

// As large as a page of ListTrials.
constexpr int kTargetsMax = 1000;

// One target for each trial: this master, asked for that trial alone.
nlohmann::json TargetsOf(const v1::ListTrialsResponse& answer, const std::string& host) {
  auto targets = nlohmann::json::array();
  for (const v1::Trial& trial : answer.trials()) {
    const std::string id = std::to_string(trial.trial_id());
    targets.push_back({{"targets", {host}},
                       {"labels",
                        {{"__param_trial", id},
                         {"__meta_stepwell_trial_id", id},
                         {"__meta_stepwell_trial", NameOf(trial)},
                         {"__meta_stepwell_project", trial.project()}}}});
  }
  return targets;
}

}  // namespace

void PrometheusDoor::Serve(HttpRoutes& routes) {
  routes.Add("GET", "/metrics", HttpDoor::kNamed,
             HttpHandler(
                 [this](const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange) {
                   AnswerMetrics(request, exchange);
                 }));
  routes.Add("GET", "/sd", HttpDoor::kNamed,
             HttpHandler(
                 [this](const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange) {
                   AnswerTargets(request, exchange);
                 }));
}

void PrometheusDoor::AnswerMetrics(const HttpRequest& request,
                                   const std::shared_ptr<HttpExchange>& exchange) {
  const auto query = ParseUrlQuery(request.query);
  std::string which;
  if (query.ok() && query->count("trial") != 0) which = query->at("trial");
  std::int64_t trial_id = 0;
  MetricFamilies families;
  if (which.empty() || which == "none") {
    add_own_(families);
    if (!which.empty()) return exchange->Answer({200, kMetricsContentType, families.Text()});
  } else if (!absl::SimpleAtoi(which, &trial_id) || trial_id <= 0) {
    return exchange->Answer(HttpErrorAnswer(400, "trial is a number of a trial, or 'none'"));
  }
  const auto scrape = std::make_shared<TrialScrape>(rpc_, std::move(families), exchange);
  exchange->WhenGone([scrape] { scrape->Cancel(); });
  if (which.empty()) {
    scrape->StartAll();
  } else {
    scrape->StartOne(trial_id);
  }
}

void PrometheusDoor::AnswerTargets(const HttpRequest& request,
                                   const std::shared_ptr<HttpExchange>& exchange) {
  // As Prometheus reached us: the guard knows the name.
  const std::string host(request.Header("Host"));
  const auto answer = [exchange, host](const RpcStatus& status,
                                       const v1::ListTrialsResponse& trials) {
    // Prometheus keeps the targets that it has where it is told no list.
    if (!status.ok()) return exchange->Answer(HttpErrorAnswer(503, status.message));
    exchange->Answer(
        {200, "application/json",
         TargetsOf(trials, host).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
             "\n"});
  };
  const auto call = StartUnary<v1::ListTrialsResponse>(
      rpc_, kListTrials, RunningTrials(kTargetsMax), ScrapeDeadline(), answer);
  if (call.ok()) return exchange->WhenGone([call = *call] { call->Cancel(); });
  exchange->Answer(HttpErrorAnswer(503, std::string(call.status().message())));
}

}  // namespace stepwell
