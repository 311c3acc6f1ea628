// TargetSearch: asks our own services for all trials that run, page by page, and answers Prometheus with a
// target for each: this master, asked for that trial alone. All or none: targets that a shorter list has not
// would be dropped, while those of an answer that fails are kept. It keeps itself alive until it has
// answered, at its deadline at the latest. Thread-safe.
//
//   auto search = std::make_shared<TargetSearch>(from, "127.0.0.1:7818", exchange);
//   exchange->WhenGone([search] { search->Cancel(); });
//   search->Start();
#pragma once

#include <memory>
#include <string>

#include "base/steady_time.h"
#include "nlohmann/json.hpp"
#include "server/http/call_chain.h"
#include "server/http/http_exchange.h"
#include "server/http/rpc_from.h"
#include "stepwell/v1/query.pb.h"

namespace stepwell {

class TargetSearch : public std::enable_shared_from_this<TargetSearch> {
 public:
  // `from` names an RpcChannel that outlives this; `host` as Prometheus reached us.
  TargetSearch(RpcFrom from, std::string host, std::shared_ptr<HttpExchange> exchange);

  void Start() { AskPage(""); }
  // Nobody waits for the answer any more.
  void Cancel() { chain_.Cancel(); }

 private:
  void AskPage(const std::string& token);
  void TakePage(const RpcStatus& status, const v1::ListTrialsResponse& page);
  void Answer(HttpResponse response);

  const RpcFrom from_;
  const SteadyTime deadline_;
  const std::string host_;
  // One call is under way at a time, and its end is the next one's beginning.
  std::shared_ptr<HttpExchange> exchange_;
  nlohmann::json targets_ = nlohmann::json::array();
  CallChain chain_;
};

}  // namespace stepwell
