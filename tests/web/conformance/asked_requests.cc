#include "tests/web/conformance/asked_requests.h"

#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/token_text.h"

namespace stepwell {

void AskedRequests::Serve(const HttpRoutes& inner, HttpRoutes& outer) {
  for (const auto& [method, path, door] : inner.Names()) {
    const HttpHandler handler = [this, &inner](const HttpRequest& request,
                                               const std::shared_ptr<HttpExchange>& exchange) {
      inner.Dispatch(Noted(request), guard_, exchange);
    };
    outer.Add(method, path, door, handler);
    if (method != "POST") continue;
    outer.AddTooLarge(path, [this, &inner](const HttpRequest& head) {
      return inner.RefuseTooLarge(head, guard_, "too large");
    });
  }
}

HttpRequest AskedRequests::Noted(HttpRequest request) {
  HttpRequest head = request;
  head.body.clear();
  std::erase_if(request.headers, [](const auto& header) {
    return absl::EqualsIgnoreCase(header.first, "Authorization");
  });
  const absl::MutexLock lock(&mu_);
  const std::string token = absl::StrCat(++count_);
  requests_[token] = std::move(head);
  request.headers.emplace_back("Authorization", absl::StrCat("Bearer ", token));
  return request;
}

HttpRequest AskedRequests::Of(const grpc::ServerContextBase& call) {
  const auto shown = call.client_metadata().find("authorization");
  if (shown == call.client_metadata().end()) return {};
  const absl::MutexLock lock(&mu_);
  auto found = requests_.extract(ShownToken({shown->second.data(), shown->second.size()}));
  return found.empty() ? HttpRequest{} : std::move(found.mapped());
}

}  // namespace stepwell
