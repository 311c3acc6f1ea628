// HostileHttp: any bytes as a request of HTTP's door, and what holds of each whatever they are: the parsers
// end, within their bounds, and what they say of it can be shown. Header only; pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "server/http/connect_envelope.h"
#include "server/http/connect_request.h"
#include "server/http/gzip.h"
#include "server/http/http_guard.h"
#include "server/http/http_routes.h"
#include "server/http/url_text.h"
#include "server/text_check.h"

namespace stepwell::testing {

inline constexpr std::size_t kHostilePlainBytesMax = 64 << 10;

// Lines up to an empty one are "METHOD target", then "Name: value"; what follows is the body.
inline HttpRequest HostileRequest(std::string_view bytes) {
  const auto take_line = [&] {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    bytes.remove_prefix(std::min(bytes.size(), line.size() + 1));
    return line;
  };
  const auto split = [](std::string_view text, char at) {
    const auto place = text.find(at);
    return std::pair(std::string(text.substr(0, place)),
                     place == text.npos ? std::string() : std::string(text.substr(place + 1)));
  };
  HttpRequest request;
  std::string target;
  std::tie(request.method, target) = split(take_line(), ' ');
  std::tie(request.path, request.query) = split(target, '?');
  while (!bytes.empty()) {
    const std::string_view line = take_line();
    if (line.empty()) break;
    request.headers.push_back(split(line, ':'));
  }
  request.body = std::string(bytes);
  return request;
}

// What is told to people and logs.
inline void CheckShown(const absl::Status& status) {
  STEPWELL_CHECK(IsUtf8(status.message()));
  STEPWELL_CHECK(status.message().size() < 1024);
}

// A router with a health page, a call, a page's file, and a rest that only GET reaches. A handler answers
// only where the path is one of these byte for byte: nothing is decoded, joined or walked.
inline void RouteHostile(const HttpRequest& request, const HttpGuard& guard) {
  static const HttpRoutes* const routes = [] {
    auto* made = new HttpRoutes;
    const HttpRoutes::Quick quick = [](const HttpRequest&) { return HttpResponse{}; };
    made->Add("GET", "/livez", HttpDoor::kOpen, quick);
    made->Add("POST", "/stepwell.v1.QueryService/ListTrials", HttpDoor::kSameOrigin, quick);
    made->Add("GET", "/index.html", HttpDoor::kNamed, quick);
    return made;
  }();
  const bool is_get = request.method == "GET" || request.method == "HEAD";
  const bool is_known = request.path == "/livez" || request.path == "/index.html";
  const bool is_call = request.path == "/stepwell.v1.QueryService/ListTrials";
  STEPWELL_CHECK(routes->IsOpen(request) == (is_get && request.path == "/livez"));
  const auto refused = routes->Refuse(request, guard);
  if (!refused) {
    STEPWELL_CHECK(is_get ? is_known : is_call && request.method == "POST");
  } else if (!is_known && !is_call) {
    STEPWELL_CHECK(refused->status == 404 || refused->status == 400 || refused->status == 403);
  } else {
    STEPWELL_CHECK(refused->status == 405 || refused->status == 400 || refused->status == 403);
  }
}

// A request, whoever read it.
inline void ReadHostileHead(const HttpRequest& request) {
  static const HttpGuard guard({.host = "0.0.0.0", .names = {"stepwell.example"}});
  for (const HttpDoor door : {HttpDoor::kOpen, HttpDoor::kNamed, HttpDoor::kSameOrigin}) {
    const auto refused = guard.Refuse(request, door);
    if (refused) STEPWELL_CHECK(refused->status == 400 || refused->status == 403);
    // A narrower door lets nobody in whom a wider one stops.
    if (refused && door == HttpDoor::kNamed) {
      STEPWELL_CHECK(guard.Refuse(request, HttpDoor::kSameOrigin).has_value());
    }
  }
  RouteHostile(request, guard);
  const auto query = ParseUrlQuery(request.query);
  if (!query.ok()) CheckShown(query.status());
  const auto envelope = ParseOneEnvelope(request.body);
  if (!envelope.ok()) CheckShown(envelope.status());
  if (envelope.ok()) {
    STEPWELL_CHECK(EnvelopeText(envelope->flags, envelope->payload) == request.body);
  }
  const auto plain = Gunzip(request.body, kHostilePlainBytesMax);
  STEPWELL_CHECK(!plain.ok() || plain->size() <= kHostilePlainBytesMax);
  const auto again = Gunzip(Gzip(request.body), request.body.size());
  STEPWELL_CHECK(again.ok() && *again == request.body);
  for (const bool streams : {false, true}) {
    const auto form = FindConnectForm(request, streams);
    if (!form) continue;
    STEPWELL_CHECK(form->is_stream == streams);
    const auto call = ReadConnectRequest(request, *form);
    if (!call.ok()) {
      CheckShown(call.status());
      continue;
    }
    STEPWELL_CHECK(call->timeout >= absl::ZeroDuration());
    STEPWELL_CHECK(call->message.size() <= request.body.size() + request.query.size());
  }
}

inline void ReadHostileHttp(std::string_view bytes) { ReadHostileHead(HostileRequest(bytes)); }

}  // namespace stepwell::testing
