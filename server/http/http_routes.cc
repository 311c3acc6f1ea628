#include "server/http/http_routes.h"

#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "nlohmann/json.hpp"
#include "server/told_error.h"

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
  return {status, "application/json",
          nlohmann::json{{"error", text}}.dump(-1, ' ', false,
                                               nlohmann::json::error_handler_t::replace) +
              "\n"};
}

HttpResponse NoCallAnswer(int status, const std::string& text) {
  HttpResponse response = HttpErrorAnswer(status, text);
  const char* const code = status == 404 ? "unimplemented" : "unknown";
  response.body = nlohmann::json{{"code", code}, {"message", text}}.dump(
                      -1, ' ', false, nlohmann::json::error_handler_t::replace) +
                  "\n";
  return response;
}

void HttpRoutes::Add(const std::string& method, const std::string& path, HttpDoor door,
                     HttpHandler handler) {
  routes_[path][method] = {.door = door, .handler = std::move(handler)};
}

void HttpRoutes::Add(const std::string& method, const std::string& path, HttpDoor door,
                     Quick handler) {
  Add(method, path, door, AtOnce(std::move(handler)));
}

void HttpRoutes::AddTooLarge(const std::string& path, Quick handler) {
  routes_.at(path).at("POST").too_large = std::move(handler);
}

void HttpRoutes::AddRest(HttpDoor door, Quick handler) {
  rest_ = {.door = door, .handler = AtOnce(std::move(handler))};
}

HttpRoutes::Found HttpRoutes::Find(const HttpRequest& head) const {
  const std::string method = head.method == "HEAD" ? "GET" : head.method;
  const auto path = routes_.find(head.path);
  if (path == routes_.end()) {
    if (method == "GET" && rest_.handler) return {&rest_, {}};
    // Nothing but calls is posted.
    return {nullptr, (method == "POST" ? NoCallAnswer : HttpErrorAnswer)(404, "no such path")};
  }
  if (const auto found = path->second.find(method); found != path->second.end()) {
    return {&found->second, {}};
  }
  std::string allow;
  bool is_call = false;
  for (const auto& [name, route] : path->second) {
    absl::StrAppend(&allow, allow.empty() ? "" : ", ", name, name == "GET" ? ", HEAD" : "");
    is_call = is_call || route.too_large != nullptr;
  }
  const auto answer = is_call ? NoCallAnswer : HttpErrorAnswer;
  Found refused{nullptr, answer(405, absl::StrCat("allowed here: ", allow))};
  refused.refusal.headers = {{"Allow", allow}};
  return refused;
}

bool HttpRoutes::IsOpen(const HttpRequest& head) const {
  const Found found = Find(head);
  return found.route != nullptr && found.route->door == HttpDoor::kOpen;
}

std::vector<HttpRoutes::Name> HttpRoutes::Names() const {
  std::vector<Name> names;
  for (const auto& [path, methods] : routes_) {
    for (const auto& [method, route] : methods) names.push_back({method, path, route.door});
  }
  return names;
}

std::optional<HttpResponse> HttpRoutes::Refuse(const HttpRequest& head,
                                               const HttpGuard& guard) const {
  Found found = Find(head);
  const HttpDoor door = found.route == nullptr ? HttpDoor::kOpen : found.route->door;
  if (auto refused = guard.Refuse(head, door)) return refused;
  if (found.route == nullptr) return std::move(found.refusal);
  return std::nullopt;
}

HttpResponse HttpRoutes::RefuseTooLarge(const HttpRequest& head, const HttpGuard& guard,
                                        const std::string& text) const {
  const Found found = Find(head);
  const bool says = found.route != nullptr && found.route->too_large != nullptr;
  if (!says || guard.Refuse(head, found.route->door)) return HttpErrorAnswer(413, text);
  return found.route->too_large(head);
}

void HttpRoutes::Dispatch(const HttpRequest& request, const HttpGuard& guard,
                          const std::shared_ptr<HttpExchange>& exchange) const {
  if (auto refused = Refuse(request, guard)) return exchange->Answer(*std::move(refused));
  try {
    Find(request).route->handler(request, exchange);
  } catch (const std::exception& error) {
    const std::string request_id = MakeRequestId();
    log::Error("http_handler_failed",
               {{"request_id", request_id}, {"path", request.path}, {"error", error.what()}});
    HttpResponse answer = HttpErrorAnswer(500, "internal error");
    answer.headers = {{"X-Request-Id", request_id}};
    exchange->Answer(std::move(answer));
  }
}

}  // namespace stepwell
