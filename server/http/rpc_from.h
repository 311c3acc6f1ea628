// RpcFrom: calls of our own services for a request of the HTTP port, in the name of whoever sent it: with its
// token, or with what stands for its certificate (TokenGuard::InsideAuthorization), which the service asks for as
// it does of others, and from his address, which limits count. A value; thread-safe.
//
//   const RpcFrom from = RpcFromRequest(rpc, request);
//   auto call = from.Start("/stepwell.v1.QueryService/GetTrial", deadline, receiver);
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/http_message.h"
#include "server/http/rpc_channel.h"
#include "server/token_guard.h"
#include "server/token_text.h"

namespace stepwell {

struct RpcFrom {
  RpcChannel& rpc;  // outlives this
  RpcSender sender;

  absl::StatusOr<std::shared_ptr<RpcCall>> Start(const std::string& method, SteadyTime deadline,
                                                 std::shared_ptr<RpcReceiver> receiver) const {
    return rpc.Start(method, sender, deadline, std::move(receiver));
  }
};

inline RpcFrom RpcFromRequest(RpcChannel& rpc, const HttpRequest& request) {
  if (!request.inside_authorization.empty()) {
    return {rpc, {request.inside_authorization, request.peer}};
  }
  const std::string token = ShownToken(request.Header("Authorization"));
  return {rpc, {token.empty() ? "" : HeaderOf(token), request.peer}};
}

}  // namespace stepwell
