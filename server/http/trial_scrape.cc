#include "server/http/trial_scrape.h"

#include <utility>

#include "server/http/http_routes.h"
#include "server/http/rpc_unary.h"

namespace stepwell {
namespace {

// A thousand machines would be a scrape each second of a thread's time; /sd divides it.
constexpr int kTrialsMax = 100;
constexpr absl::Duration kScrapeWait = absl::Seconds(8);

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
  {
    // Its end may come on another thread before its beginning is known here.
    const absl::MutexLock lock(&mu_);
    auto call = StartUnary<Response>(
        rpc_, method, request, deadline_,
        [self = shared_from_this(), take](const RpcStatus& status, Response& answer) {
          ((*self).*take)(status, answer);
        });
    if (call.ok()) {
      call_ = *std::move(call);
      if (cancelled_) call_->Cancel();
      return;
    }
  }
  metrics_.NoteIncomplete();
  Answer();
}

void TrialScrape::StartAll() {
  Ask(kListTrials, RunningTrials(kTrialsMax), &TrialScrape::TakeTrials);
}

void TrialScrape::StartOne(std::int64_t trial_id) {
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
  if (!status.ok()) {
    // An empty answer would pass for a trial that measures nothing.
    const bool is_gone = status.code == absl::StatusCode::kNotFound;
    std::exchange(exchange_, nullptr)->Answer(HttpErrorAnswer(is_gone ? 404 : 503, status.message));
    return;
  }
  trials_.push_back(answer.trial());
  Next();
}

void TrialScrape::Next() {
  if (next_ == trials_.size()) return Answer();
  v1::LatestValuesRequest request;
  request.mutable_trial()->set_trial_id(trials_[next_].trial_id());
  Ask("/stepwell.v1.QueryService/LatestValues", request, &TrialScrape::TakeValues);
}

void TrialScrape::TakeValues(const RpcStatus& status, v1::LatestValuesResponse& answer) {
  // One that was deleted meanwhile is no loss.
  const bool is_gone = status.code == absl::StatusCode::kNotFound;
  if (status.ok()) metrics_.Add(trials_[next_], answer);
  if (!status.ok() && !is_gone) metrics_.NoteIncomplete();
  ++next_;
  if (status.ok() || is_gone) return Next();
  Answer();
}

void TrialScrape::Answer() {
  metrics_.Finish();
  std::exchange(exchange_, nullptr)->Answer({200, kMetricsContentType, families_.Text()});
}

void TrialScrape::Cancel() {
  const absl::MutexLock lock(&mu_);
  cancelled_ = true;
  if (call_ != nullptr) call_->Cancel();
}

}  // namespace stepwell
