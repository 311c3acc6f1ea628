#include "server/http/connect_gateway.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "server/http/connect_call.h"
#include "server/http/connect_error.h"
#include "server/http/connect_request.h"
#include "server/http/rpc_from.h"

namespace stepwell {
namespace {

using google::protobuf::MethodDescriptor;

std::string PathOf(const MethodDescriptor& method) {
  return absl::StrCat("/", method.service()->full_name(), "/", method.name());
}

HttpResponse UnsupportedType(const MethodDescriptor& method) {
  const bool streams = method.server_streaming();
  const std::string allowed =
      absl::StrCat(ConnectForm{.is_json = true, .is_stream = streams}.content_type(), ", ",
                   ConnectForm{.is_json = false, .is_stream = streams}.content_type());
  HttpResponse response = HttpErrorAnswer(415, absl::StrCat("allowed here: ", allowed));
  response.headers = {{"Accept-Post", allowed}};
  return response;
}

}  // namespace

void ConnectGateway::Serve(const google::protobuf::ServiceDescriptor& service, HttpRoutes& routes) {
  for (int i = 0; i < service.method_count(); ++i) {
    const MethodDescriptor& method = *service.method(i);
    if (method.client_streaming()) continue;
    const HttpHandler answer = [this, &method](const HttpRequest& request,
                                               const std::shared_ptr<HttpExchange>& exchange) {
      Answer(method, request, exchange);
    };
    routes.Add("POST", PathOf(method), HttpDoor::kSameOrigin, answer);
    const bool is_safe =
        method.options().idempotency_level() == google::protobuf::MethodOptions::NO_SIDE_EFFECTS;
    if (options_.serves_get && is_safe && !method.server_streaming()) {
      routes.Add("GET", PathOf(method), HttpDoor::kSameOrigin, answer);
    }
  }
}

void ConnectGateway::Answer(const MethodDescriptor& method, const HttpRequest& request,
                            const std::shared_ptr<HttpExchange>& exchange) const {
  const auto form = FindConnectForm(request, method.server_streaming());
  if (!form) return exchange->Answer(UnsupportedType(method));
  if (form->is_stream && !request.is_http_1_1) {
    return exchange->Answer(HttpErrorAnswer(505, "a stream wants HTTP/1.1"));
  }
  absl::StatusOr<ConnectRequest> asked = ReadConnectRequest(request, *form);
  absl::Status failed = asked.status();
  if (asked.ok()) {
    const SteadyTime deadline = asked->timeout == absl::InfiniteDuration()
                                    ? SteadyTime::InfiniteFuture()
                                    : SteadyTime::Now() + asked->timeout;
    if (request.is_from_loopback && !options_.packs_for_loopback) asked->accepts_gzip = false;
    const auto call = RpcFromRequest(rpc_, request)
                          .Start(PathOf(method), deadline,
                                 std::make_shared<ConnectCall>(method, *std::move(asked), exchange,
                                                               options_.request_bytes_max));
    if (call.ok()) return exchange->WhenGone([call = *call] { call->Cancel(); });
    failed = call.status();
  }
  AnswerConnectFailure(*form, {failed.code(), std::string(failed.message())}, *exchange);
}

}  // namespace stepwell
