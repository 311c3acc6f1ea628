#include "server/http/prometheus_door.h"

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "server/http/rpc_from.h"
#include "server/http/target_search.h"
#include "server/http/trial_scrape.h"
#include "server/http/url_text.h"
#include "server/text_check.h"

namespace stepwell {

namespace {

constexpr char kAllowed[] = "trial is a number of a trial, or 'none'";

// What a query names; empty without one. What cannot be read is not taken for none: that would be all trials.
absl::StatusOr<std::string> TrialAsked(std::string_view query_untrusted) {
  STEPWELL_ASSIGN_OR_RETURN(const auto query, ParseUrlQuery(query_untrusted));
  for (const auto& [name, value] : query) {
    if (name != "trial") {
      return absl::InvalidArgumentError(
          absl::StrCat("the query has '", Shortened(name, 64), "', allowed is trial"));
    }
    if (value.empty())
      return absl::InvalidArgumentError(absl::StrCat("trial is empty; ", kAllowed));
  }
  return query.empty() ? std::string() : query.at("trial");
}

}  // namespace

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
  const absl::StatusOr<std::string> asked = TrialAsked(request.query);
  if (!asked.ok()) {
    return exchange->Answer(HttpErrorAnswer(400, std::string(asked.status().message())));
  }
  const std::string& which = *asked;
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
    return exchange->Answer(HttpErrorAnswer(400, kAllowed));
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
  // What asks for one trial here would scrape all.
  if (!request.query.empty()) {
    return exchange->Answer(
        HttpErrorAnswer(400, "/sd takes no parameter; /metrics?trial=N is of one trial"));
  }
  // As Prometheus reached us: the guard knows the name.
  const auto search = std::make_shared<TargetSearch>(RpcFromRequest(rpc_, request),
                                                     std::string(request.Header("Host")), exchange);
  exchange->WhenGone([search] { search->Cancel(); });
  search->Start();
}

}  // namespace stepwell
