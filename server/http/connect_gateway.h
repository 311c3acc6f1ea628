// ConnectGateway: our gRPC services over the Connect protocol, which browsers and curl speak: one path for
// each method, by descriptor. It translates and decides nothing: checks, turns, deadlines and errors are the
// service's, which it reaches through RpcChannel. The service counts its calls; what is none, for it cannot be
// read or comes too late, is counted here, and who has used up his calls is sent away before his are read.
//
//   ConnectGateway gateway({}, rpc);
//   gateway.Serve(*file->FindServiceByName("QueryService"), http.routes());
#pragma once

#include <cstddef>
#include <memory>

#include "server/http/http_routes.h"
#include "server/http/rpc_channel.h"
#include "server/rate_limits.h"
#include "server/token_guard.h"

namespace google::protobuf {
class MethodDescriptor;
class ServiceDescriptor;
}  // namespace google::protobuf

namespace stepwell {

class ConnectGateway {
 public:
  struct Options {
    // Methods without side effects by GET, too: the request stands in the URL, and so in others' logs.
    bool serves_get = false;
    // Null: nobody was asked for a token.
    std::shared_ptr<TokenGuard> tokens = nullptr;
    // Null: nothing is counted.
    std::shared_ptr<RateLimits> rates = nullptr;
    // Answers travel within this machine in no time, and packing them takes some.
    bool packs_for_loopback = false;
    std::size_t request_bytes_max = 4 << 20;
  };
  // `rpc` outlives this, and this the routes.
  ConnectGateway(Options options, RpcChannel& rpc) : options_(options), rpc_(rpc) {}

  // All methods but those to which clients stream: HTTP/1.1 has no answer before the request's end.
  void Serve(const google::protobuf::ServiceDescriptor& service, HttpRoutes& routes);

 private:
  void Answer(const google::protobuf::MethodDescriptor& method, const HttpRequest& request,
              const std::shared_ptr<HttpExchange>& exchange) const;
  // Of a body that is not read, so that no service hears of the call: it counts as none.
  HttpResponse AnswerTooLarge(const google::protobuf::MethodDescriptor& method,
                              const HttpRequest& head) const;

  const Options options_;
  RpcChannel& rpc_;
};

}  // namespace stepwell
