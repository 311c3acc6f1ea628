// HttpHead: the head of an answer, whole or streamed, as it travels. Pure.
//
//   FillHttpHead(response, keep_alive, message);
#pragma once

#include <boost/beast/http.hpp>

#include "server/http/http_message.h"

namespace stepwell {

template <typename Message>
void FillHttpHead(const HttpResponse& response, bool keep_alive, Message& message) {
  namespace http = boost::beast::http;
  message.version(11);
  message.result(static_cast<unsigned>(response.status));
  message.set(http::field::content_type, response.content_type);
  message.set(http::field::cache_control, "no-store");
  message.set("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : response.headers) message.set(name, value);
  message.keep_alive(keep_alive);
}

}  // namespace stepwell
