#include "server/http/http_routes.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "nlohmann/json.hpp"

namespace stepwell {
namespace {

HttpHandler AtOnce(HttpRoutes::Quick handler) {
  return [handler = std::move(handler)](const HttpRequest& request,
                                        const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Answer(handler(request));
  };
}

}  // namespace

HttpResponse HttpErrorAnswer(int status, const std::string& text) {
  return {status, "application/json", nlohmann::json{{"error", text}}.dump() + "\n"};
}

void HttpRoutes::Add(const std::string& method, const std::string& path, HttpDoor door,
                     HttpHandler handler) {
  routes_[path][method] = {door, std::move(handler)};
}

void HttpRoutes::Add(const std::string& method, const std::string& path, HttpDoor door,
                     Quick handler) {
  Add(method, path, door, AtOnce(std::move(handler)));
}

void HttpRoutes::AddRest(HttpDoor door, Quick handler) {
  rest_ = {door, AtOnce(std::move(handler))};
}

const HttpRoutes::Route* HttpRoutes::FindRest(const std::string& method) const {
  return method == "GET" && rest_.handler ? &rest_ : nullptr;
}

void HttpRoutes::Dispatch(const HttpRequest& request, const HttpGuard& guard,
                          const std::shared_ptr<HttpExchange>& exchange) const {
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  const auto path = routes_.find(request.path);
  const Route* route = nullptr;
  HttpResponse refusal = HttpErrorAnswer(404, "no such path");
  if (path == routes_.end()) {
    route = FindRest(method);
  } else if (const auto found = path->second.find(method); found != path->second.end()) {
    route = &found->second;
  } else {
    std::string allow;
    for (const auto& [name, ignored] : path->second) {
      absl::StrAppend(&allow, allow.empty() ? "" : ", ", name, name == "GET" ? ", HEAD" : "");
    }
    refusal = HttpErrorAnswer(405, absl::StrCat("allowed here: ", allow));
    refusal.headers = {{"Allow", allow}};
  }
  if (auto refused = guard.Refuse(request, route == nullptr ? HttpDoor::kOpen : route->door)) {
    return exchange->Answer(*std::move(refused));
  }
  if (route == nullptr) return exchange->Answer(std::move(refusal));
  try {
    route->handler(request, exchange);
  } catch (const std::exception& error) {
    log::Error("http_handler_failed", {{"path", request.path}, {"error", error.what()}});
    exchange->Answer(HttpErrorAnswer(500, "internal error"));
  }
}

}  // namespace stepwell
