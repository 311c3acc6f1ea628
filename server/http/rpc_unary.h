// RpcUnary: a unary call of our own services whose answer is a message. Thread-safe.
//
//   auto call = StartUnary<v1::ListTrialsResponse>(from, "/stepwell.v1.QueryService/ListTrials", request,
//                                                  deadline, [](const RpcStatus& status, auto& answer) { ... });
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/http/rpc_from.h"

namespace stepwell {

template <typename Response>
class RpcUnary final : public RpcReceiver {
 public:
  // Called once, on a thread "http-rpc"; `answer` is empty where the call failed.
  using Done = std::function<void(const RpcStatus&, Response& answer)>;

  RpcUnary(std::string request, Done done) : request_(std::move(request)), done_(std::move(done)) {}

  absl::StatusOr<std::string> MakeRequest() override { return std::move(request_); }
  void OnMessage(const std::shared_ptr<RpcCall>& call, const SharedBytes& bytes) override {
    parsed_ = answer_.ParseFromString(bytes.Text());
    call->Next();
  }
  void OnEnd(const RpcStatus& status) override {
    const RpcStatus unread{absl::StatusCode::kInternal, "the service said nothing"};
    if (!status.ok() || !parsed_) answer_.Clear();
    std::exchange(done_, nullptr)(status.ok() && !parsed_ ? unread : status, answer_);
  }

 private:
  std::string request_;
  Done done_;
  Response answer_;
  bool parsed_ = false;
};

template <typename Response, typename Request>
absl::StatusOr<std::shared_ptr<RpcCall>> StartUnary(const RpcFrom& from, const std::string& method,
                                                    const Request& request, SteadyTime deadline,
                                                    typename RpcUnary<Response>::Done done) {
  return from.Start(
      method, deadline,
      std::make_shared<RpcUnary<Response>>(request.SerializeAsString(), std::move(done)));
}

}  // namespace stepwell
