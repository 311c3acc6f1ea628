#include "server/http/trial_scrape.h"

#include <utility>

#include "server/http/http_routes.h"

namespace stepwell {
namespace {

// A thousand machines would be a scrape each second of a thread's time; /sd divides it.
constexpr int kTrialsMax = 100;
constexpr absl::Duration kScrapeWait = absl::Seconds(8);

// Other trials would not be answered either.
bool EndsAll(absl::StatusCode code) {
  return code == absl::StatusCode::kDeadlineExceeded || code == absl::StatusCode::kUnavailable ||
         code == absl::StatusCode::kCancelled;
}

}  // namespace

v1::ListTrialsRequest RunningTrials(int count) {
  v1::ListTrialsRequest request;
  request.set_state(v1::TRIAL_STATE_RUNNING);
  request.set_page_size(count);
  return request;
}

SteadyTime ScrapeDeadline() { return SteadyTime::Now() + kScrapeWait; }

TrialScrape::TrialScrape(RpcChannel& rpc, MetricFamilies families,
                         std::shared_ptr<HttpExchange> exchange)
    : rpc_(rpc),
      deadline_(ScrapeDeadline()),
      families_(std::move(families)),
      exchange_(std::move(exchange)) {}

template <typename Response, typename Request>
void TrialScrape::Ask(const char* method, const Request& request,
                      void (TrialScrape::*take)(const RpcStatus&, Response&)) {
  chain_.Start<Response>(
      rpc_, method, request, deadline_,
      [self = shared_from_this(), take](const RpcStatus& status, Response& answer) {
        ((*self).*take)(status, answer);
      });
}

void TrialScrape::StartAll() {
  Ask(kListTrials, RunningTrials(kTrialsMax), &TrialScrape::TakeTrials);
}

void TrialScrape::StartOne(std::int64_t trial_id) {
  is_alone_ = true;
  v1::GetTrialRequest request;
  request.mutable_trial()->set_trial_id(trial_id);
  Ask("/stepwell.v1.QueryService/GetTrial", request, &TrialScrape::TakeTrial);
}

void TrialScrape::TakeTrials(const RpcStatus& status, v1::ListTrialsResponse& answer) {
  if (!status.ok() || !answer.next_page_token().empty()) metrics_.NoteIncomplete();
  trials_.assign(answer.trials().begin(), answer.trials().end());
  Next();
}

void TrialScrape::TakeTrial(const RpcStatus& status, v1::GetTrialResponse& answer) {
  if (!status.ok()) return Refuse(status);
  trials_.push_back(answer.trial());
  Next();
}

void TrialScrape::Next() {
  if (next_ == trials_.size()) return Answer();
  v1::LatestValuesRequest request;
  request.mutable_trial()->set_trial_id(trials_[next_].trial_id());
  request.mutable_selector()->set_metric_group(std::string(kMachineGroups[next_group_]));
  Ask("/stepwell.v1.QueryService/LatestValues", request, &TrialScrape::TakeValues);
}

void TrialScrape::TakeValues(const RpcStatus& status, v1::LatestValuesResponse& answer) {
  if (status.ok()) {
    latest_.mutable_completeness()->set_answered_time_us(answer.completeness().answered_time_us());
    for (auto& value : *answer.mutable_values()) latest_.add_values()->Swap(&value);
    if (++next_group_ < kMachineGroups.size()) return Next();
    metrics_.Add(trials_[next_], latest_);
  } else if (is_alone_) {
    return Refuse(status);
  } else if (status.code != absl::StatusCode::kNotFound) {
    // One that was deleted meanwhile is no loss.
    metrics_.NoteIncomplete();
    if (EndsAll(status.code)) return Answer();
  }
  latest_.Clear();
  next_group_ = 0;
  ++next_;
  Next();
}

void TrialScrape::Answer() {
  metrics_.Finish();
  std::exchange(exchange_, nullptr)->Answer({200, kMetricsContentType, families_.Text()});
}

void TrialScrape::Refuse(const RpcStatus& status) {
  // An empty answer would pass for a trial that measures nothing.
  const bool is_gone = status.code == absl::StatusCode::kNotFound;
  std::exchange(exchange_, nullptr)->Answer(HttpErrorAnswer(is_gone ? 404 : 503, status.message));
}

}  // namespace stepwell
