// TrialScrape: asks our own services for the newest values of the machines of running trials, a few trials at
// a time, and answers a scrape with them. A trial that fails is left out, and the answer says so; one that
// was asked for alone is no answer then. It keeps itself alive until it has answered, at its deadline at the
// latest with the trials that it has by then. Thread-safe.
//
//   auto scrape = std::make_shared<TrialScrape>(from, std::move(families), exchange);
//   exchange->WhenGone([scrape] { scrape->Cancel(); });
//   scrape->StartAll();
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/steady_time.h"
#include "server/http/call_chain.h"
#include "server/http/http_exchange.h"
#include "server/http/rpc_from.h"
#include "server/http/trial_reading.h"
#include "server/metric_families.h"
#include "server/trial_metrics.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {

class TrialScrape : public std::enable_shared_from_this<TrialScrape> {
 public:
  // Beside each other: a quarter of the turns that reads have.
  static constexpr std::size_t kTrialsAtOnce = 4;

  // `from` names an RpcChannel that outlives this; `families` have what is told beside.
  TrialScrape(RpcFrom from, MetricFamilies families, std::shared_ptr<HttpExchange> exchange);

  // Of all trials that run, or of one.
  void StartAll();
  void StartOne(std::int64_t trial_id);
  // Nobody waits for the answer any more.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // One of a wave: the trials that are asked for beside each other. The next wave waits for all of them, so
  // that they are told in their order, and where there are too many the same are left out each time.
  struct Read {
    std::shared_ptr<TrialReading> reading;
    RpcStatus status;
  };

  void NextWave() ABSL_LOCKS_EXCLUDED(mu_);
  void NoteRead(std::size_t place, const RpcStatus& status) ABSL_LOCKS_EXCLUDED(mu_);
  void TakeWave() ABSL_LOCKS_EXCLUDED(mu_);
  void Answer();
  void Refuse(const RpcStatus& status);
  void TakeTrials(const RpcStatus& status, v1::ListTrialsResponse& answer);
  void TakeTrial(const RpcStatus& status, v1::GetTrialResponse& answer);

  const RpcFrom from_;
  const SteadyTime deadline_;
  // Only between waves, where one thread is here.
  MetricFamilies families_;
  TrialMetrics metrics_{families_};
  std::shared_ptr<HttpExchange> exchange_;
  std::vector<v1::Trial> trials_;
  std::size_t next_ = 0;
  // One trial was asked for.
  bool is_alone_ = false;
  CallChain chain_;

  absl::Mutex mu_;
  std::vector<Read> wave_ ABSL_GUARDED_BY(mu_);
  std::size_t unread_ ABSL_GUARDED_BY(mu_) = 0;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

// The newest `count` trials that run.
v1::ListTrialsRequest RunningTrials(int count);
inline constexpr char kListTrials[] = "/stepwell.v1.QueryService/ListTrials";
// Prometheus waits 10 s by default.
SteadyTime ScrapeDeadline();

}  // namespace stepwell
