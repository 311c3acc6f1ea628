// PrometheusDoor: what Prometheus asks the master for: /metrics, of itself and of the machines of running
// trials, and /sd, a target for each of these trials. What it tells of trials it asks of our own services, in
// the name of who asks, so that scrapes take their turns and deadlines as everybody does. Thread-safe.
//
//   PrometheusDoor door(rpc, [&](MetricFamilies& families) { AddMasterMetrics(Read(), families); });
//   door.Serve(http.routes());
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "server/http/http_routes.h"
#include "server/http/rpc_channel.h"
#include "server/metric_families.h"

namespace stepwell {

class PrometheusDoor {
 public:
  // Quick, on the thread "http".
  using AddOwn = std::function<void(MetricFamilies&)>;

  // Whether whoever asks may know of the master as a whole; an error, which is answered 503, where that cannot
  // be told now. As quick.
  using ShowsOwn = std::function<absl::StatusOr<bool>(const HttpRequest&)>;

  // `rpc` outlives this.
  PrometheusDoor(
      RpcChannel& rpc, AddOwn add_own, ShowsOwn shows_own = [](const HttpRequest&) { return true; })
      : rpc_(rpc), add_own_(std::move(add_own)), shows_own_(std::move(shows_own)) {}

  // GET /metrics and GET /sd. This outlives `routes`' use.
  void Serve(HttpRoutes& routes);

 private:
  void AnswerMetrics(const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange);
  void AnswerTargets(const HttpRequest& request, const std::shared_ptr<HttpExchange>& exchange);

  RpcChannel& rpc_;
  const AddOwn add_own_;
  const ShowsOwn shows_own_;
};

}  // namespace stepwell
