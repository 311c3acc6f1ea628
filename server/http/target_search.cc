#include "server/http/target_search.h"

#include <utility>

#include "server/http/connect_error.h"
#include "server/http/http_routes.h"
#include "server/http/trial_scrape.h"
#include "server/trial_metrics.h"

namespace stepwell {
namespace {

// As large as a page of ListTrials.
constexpr int kPageTrials = 1000;

nlohmann::json TargetOf(const v1::Trial& trial, const std::string& host) {
  const std::string id = std::to_string(trial.trial_id());
  return {{"targets", {host}},
          {"labels",
           {{"__param_trial", id},
            {"__meta_stepwell_trial_id", id},
            {"__meta_stepwell_trial", NameOf(trial)},
            {"__meta_stepwell_project", trial.project()}}}};
}

}  // namespace

TargetSearch::TargetSearch(RpcFrom from, std::string host, std::shared_ptr<HttpExchange> exchange)
    : from_(std::move(from)),
      deadline_(ScrapeDeadline()),
      host_(std::move(host)),
      exchange_(std::move(exchange)) {}

void TargetSearch::AskPage(const std::string& token) {
  v1::ListTrialsRequest request = RunningTrials(kPageTrials);
  request.set_page_token(token);
  chain_.Start<v1::ListTrialsResponse>(
      from_, kListTrials, request, deadline_,
      [self = shared_from_this()](const RpcStatus& status, const v1::ListTrialsResponse& page) {
        self->TakePage(status, page);
      });
}

void TargetSearch::TakePage(const RpcStatus& status, const v1::ListTrialsResponse& page) {
  if (!status.ok()) return Answer(PlainErrorAnswer(status));
  for (const v1::Trial& trial : page.trials()) targets_.push_back(TargetOf(trial, host_));
  if (!page.next_page_token().empty()) return AskPage(page.next_page_token());
  Answer({200, "application/json",
          targets_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"});
}

void TargetSearch::Answer(HttpResponse response) {
  // It knows of us, too, so that neither would go.
  std::exchange(exchange_, nullptr)->Answer(std::move(response));
}

}  // namespace stepwell
