// TrialScrape: asks our own services for the newest values of the machines of running trials, one trial and
// one metric group after the other, and answers a scrape with them: series of training, of which there may be
// many, are never asked for. A trial that fails is left out, and the answer says so; one that was asked for
// alone is no answer then. It keeps itself alive until it has answered, at its deadline at the latest with
// the trials that it has by then. Thread-safe.
//
//   auto scrape = std::make_shared<TrialScrape>(rpc, std::move(families), exchange);
//   exchange->WhenGone([scrape] { scrape->Cancel(); });
//   scrape->StartAll();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/steady_time.h"
#include "server/http/call_chain.h"
#include "server/http/http_exchange.h"
#include "server/http/rpc_channel.h"
#include "server/metric_families.h"
#include "server/trial_metrics.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {

class TrialScrape : public std::enable_shared_from_this<TrialScrape> {
 public:
  // `rpc` outlives this; `families` have what is told beside.
  TrialScrape(RpcChannel& rpc, MetricFamilies families, std::shared_ptr<HttpExchange> exchange);

  // Of all trials that run, or of one.
  void StartAll();
  void StartOne(std::int64_t trial_id);
  // Nobody waits for the answer any more.
  void Cancel() { chain_.Cancel(); }

 private:
  void Next();
  void Answer();
  void Refuse(const RpcStatus& status);
  template <typename Response, typename Request>
  void Ask(const char* method, const Request& request,
           void (TrialScrape::*take)(const RpcStatus&, Response&));
  void TakeTrials(const RpcStatus& status, v1::ListTrialsResponse& answer);
  void TakeTrial(const RpcStatus& status, v1::GetTrialResponse& answer);
  void TakeValues(const RpcStatus& status, v1::LatestValuesResponse& answer);

  RpcChannel& rpc_;
  const SteadyTime deadline_;
  // One call is under way at a time, and its end is the next one's beginning.
  MetricFamilies families_;
  TrialMetrics metrics_{families_};
  std::shared_ptr<HttpExchange> exchange_;
  std::vector<v1::Trial> trials_;
  std::size_t next_ = 0;
  // Of the next trial, from the groups before the next one.
  v1::LatestValuesResponse latest_;
  std::size_t next_group_ = 0;
  // One trial was asked for.
  bool is_alone_ = false;
  CallChain chain_;
};

// The newest `count` trials that run.
v1::ListTrialsRequest RunningTrials(int count);
inline constexpr char kListTrials[] = "/stepwell.v1.QueryService/ListTrials";
// Prometheus waits 10 s by default.
SteadyTime ScrapeDeadline();

}  // namespace stepwell
