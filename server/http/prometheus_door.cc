#include "server/http/prometheus_door.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "server/http/rpc_from.h"
#include "server/http/target_search.h"
#include "server/http/trial_scrape.h"
#include "server/http/url_text.h"

namespace stepwell {

// As calls: a scrape costs as much as a hundred of them, and a Prometheus names no page that it comes from.
void PrometheusDoor::Serve(HttpRoutes& routes) {
  routes.Add("GET", "/metrics", HttpDoor::kSameOrigin,
             HttpHandler(
                 [this](const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange) {
                   AnswerMetrics(request, exchange);
                 }));
  routes.Add("GET", "/sd", HttpDoor::kSameOrigin,
             HttpHandler(
                 [this](const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange) {
                   AnswerTargets(request, exchange);
                 }));
}

void PrometheusDoor::AnswerMetrics(const HttpRequest& request,
                                   const std::shared_ptr<HttpExchange>& exchange) {
  const auto query = ParseUrlQuery(request.query);
  // Taken for none it would be all trials.
  if (!query.ok()) {
    return exchange->Answer(HttpErrorAnswer(400, std::string(query.status().message())));
  }
  std::string which;
  if (query->count("trial") != 0) which = query->at("trial");
  std::int64_t trial_id = 0;
  MetricFamilies families;
  if (which.empty() || which == "none") {
    // The master's own tell of all projects together.
    const absl::StatusOr<bool> shows_own = shows_own_(request);
    if (!shows_own.ok()) {
      return exchange->Answer(HttpErrorAnswer(503, std::string(shows_own.status().message())));
    }
    if (*shows_own) add_own_(families);
    if (!which.empty() && !*shows_own) {
      return exchange->Answer(
          HttpErrorAnswer(403, "the master's own metrics want the grant read:*"));
    }
    if (!which.empty()) return exchange->Answer({200, kMetricsContentType, families.Text()});
  } else if (!absl::SimpleAtoi(which, &trial_id) || trial_id <= 0) {
    return exchange->Answer(HttpErrorAnswer(400, "trial is a number of a trial, or 'none'"));
  }
  const auto scrape =
      std::make_shared<TrialScrape>(RpcFromRequest(rpc_, request), std::move(families), exchange);
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
  const auto search = std::make_shared<TargetSearch>(RpcFromRequest(rpc_, request),
                                                     std::string(request.Header("Host")), exchange);
  exchange->WhenGone([search] { search->Cancel(); });
  search->Start();
}

}  // namespace stepwell
