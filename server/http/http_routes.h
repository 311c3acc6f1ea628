// HttpRoutes: which handler answers which path. Paths are compared as they were sent, so that none of
// them is ever decoded, joined or walked. Filled before it is used; then thread-safe.
//
//   routes.Add("GET", "/livez", HttpDoor::kOpen, [](const HttpRequest&) { return HttpResponse{}; });
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/http/http_exchange.h"
#include "server/http/http_guard.h"

namespace stepwell {

class HttpRoutes {
 public:
  using Quick = std::function<HttpResponse(const HttpRequest&)>;

  // `handler` runs on the thread "http" and must be quick; it may answer later.
  void Add(const std::string& method, const std::string& path, HttpDoor door, HttpHandler handler);
  // Answers at once.
  void Add(const std::string& method, const std::string& path, HttpDoor door, Quick handler);
  // What a POST to `path` gets whose body is too large, by its header; 413 where nothing is said. REQUIRES: was added.
  void AddTooLarge(const std::string& path, Quick handler);
  // What a GET of any other path gets.
  void AddRest(HttpDoor door, Quick handler);

  // Whether it is asked by whoever comes, token or not: of a route that says so.
  bool IsOpen(const HttpRequest& head) const;
  // All there are, but the rest.
  struct Name {
    std::string method;
    std::string path;
    HttpDoor door;
  };
  std::vector<Name> Names() const;
  // Why no handler will answer, by the header alone: no body is read for whoever may not call. Nothing: one
  // will. A HEAD is a GET here.
  std::optional<HttpResponse> Refuse(const HttpRequest& head, const HttpGuard& guard) const;
  // What a body that is too large gets.
  HttpResponse RefuseTooLarge(const HttpRequest& head, const HttpGuard& guard,
                              const std::string& text) const;
  // Asks Refuse once more, for a body's trailers are headers, too, and lets it or the handler answer.
  void Dispatch(const HttpRequest& request, const HttpGuard& guard,
                const std::shared_ptr<HttpExchange>& exchange) const;

 private:
  struct Route {
    HttpDoor door = HttpDoor::kNamed;
    HttpHandler handler;
    Quick too_large = nullptr;
  };
  struct Found {
    const Route* route = nullptr;
    HttpResponse refusal;  // where there is none
  };
  Found Find(const HttpRequest& head) const;

  std::map<std::string, std::map<std::string, Route>> routes_;  // path → method → route
  Route rest_;
};

// {"error": text}, for what is no call.
HttpResponse HttpErrorAnswer(int status, const std::string& text);
// For what was to be one, as Connect's clients read it: {"code", "message"}, with the code that they would give `status`.
HttpResponse NoCallAnswer(int status, const std::string& text);

}  // namespace stepwell
