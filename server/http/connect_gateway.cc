#include "server/http/connect_gateway.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "server/caller.h"
#include "server/error_details.h"
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
  HttpResponse response = NoCallAnswer(415, absl::StrCat("allowed here: ", allowed));
  response.headers = {{"Accept-Post", allowed}};
  return response;
}

// Whose calls a request is one of.
class CallCount {
 public:
  CallCount(TokenGuard* tokens, std::shared_ptr<RateLimits> rates, const HttpRequest& request)
      : rates_(std::move(rates)), address_(request.peer) {
    if (rates_ == nullptr || tokens == nullptr) return;
    // It was let in with it, and is held by its address alone where that has ended since: the service tells.
    if (auto found = tokens->Identify(request.Authorization()); found.ok()) {
      caller_ = *std::move(found);
    }
  }

  // Whether any is left. Takes none.
  absl::Status Look() const {
    return rates_ == nullptr ? absl::OkStatus() : rates_->Take(RateKind::kCalls, payer(), 0);
  }
  void Spend() const {
    if (rates_ != nullptr) rates_->Spend(RateKind::kCalls, payer(), 1);
  }

 private:
  RatePayer payer() const { return {address_, caller_.get()}; }

  std::shared_ptr<RateLimits> rates_;
  std::string address_;
  Caller caller_;
};

// A call that is counted where the service does not hear of it.
class CountedCall final : public ConnectCall {
 public:
  CountedCall(const MethodDescriptor& method, ConnectRequest request,
              std::shared_ptr<HttpExchange> exchange, std::size_t request_bytes_max,
              CallCount count, SteadyTime deadline)
      : ConnectCall(method, std::move(request), std::move(exchange), request_bytes_max),
        count_(std::move(count)),
        deadline_(deadline) {}

  absl::StatusOr<std::string> MakeRequest() override {
    auto made = ConnectCall::MakeRequest();
    if (made.ok() && deadline_.HasPassed()) {
      made = absl::DeadlineExceededError("the time of the call was over before it began");
    }
    if (!made.ok()) count_.Spend();
    return made;
  }

 private:
  const CallCount count_;
  const SteadyTime deadline_;
};

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
    routes.AddTooLarge(PathOf(method), [this, &method](const HttpRequest& head) {
      return AnswerTooLarge(method, head);
    });
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
  // What names no form of a call costs what a path does that nobody serves, and is none either.
  if (!form) return exchange->Answer(UnsupportedType(method));
  if (form->is_stream && !request.is_http_1_1) {
    return exchange->Answer(HttpErrorAnswer(505, "a stream wants HTTP/1.1"));
  }
  CallCount count(options_.tokens.get(), options_.rates, request);
  if (const absl::Status may = count.Look(); !may.ok()) {
    return exchange->Answer(ConnectFailure(
        *form, {may.code(), std::string(may.message()), WireDetails(may, DetailsOf(may))}));
  }
  absl::StatusOr<ConnectRequest> asked = ReadConnectRequest(request, *form);
  absl::Status failed = asked.status();
  if (!asked.ok()) {
    count.Spend();
  } else {
    const SteadyTime deadline = asked->timeout == absl::InfiniteDuration()
                                    ? SteadyTime::InfiniteFuture()
                                    : SteadyTime::Now() + asked->timeout;
    if (request.is_from_loopback && !options_.packs_for_loopback) asked->accepts_gzip = false;
    const auto call = RpcFromRequest(rpc_, request)
                          .Start(PathOf(method), deadline,
                                 std::make_shared<CountedCall>(method, *std::move(asked), exchange,
                                                               options_.request_bytes_max,
                                                               std::move(count), deadline));
    if (call.ok()) return exchange->WhenGone([call = *call] { call->Cancel(); });
    failed = call.status();
  }
  exchange->Answer(ConnectFailure(*form, {failed.code(), std::string(failed.message())}));
}

HttpResponse ConnectGateway::AnswerTooLarge(const MethodDescriptor& method,
                                            const HttpRequest& head) const {
  const auto form = FindConnectForm(head, method.server_streaming());
  if (!form) return UnsupportedType(method);
  const absl::Status refused = TooLargeRequest(options_.request_bytes_max);
  return ConnectFailure(*form, {refused.code(), std::string(refused.message())});
}

}  // namespace stepwell
