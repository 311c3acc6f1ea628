#include "server/http/http_reading.h"

#include <boost/asio/error.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <string>

#include "server/http/http_routes.h"
#include "server/http/url_text.h"

namespace stepwell {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

HttpRequest ReadHttpHead(const http::request_header<http::fields>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string target(message.target());
  const UrlTarget asked = SplitUrlTarget(target);
  request.path = asked.path;
  request.query = asked.query;
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  if (asked.authority) request.SetHost(std::string(*asked.authority));
  request.is_http_1_1 = message.version() >= 11;
  return request;
}

std::optional<HttpResponse> AnswerHttpError(beast::error_code error) {
  if (error == http::error::header_limit) return HttpErrorAnswer(431, "the header is too large");
  if (error == http::error::body_limit) return HttpErrorAnswer(413, "the body is too large");
  if (error == http::error::buffer_overflow) {
    // Of the header the limit comes first.
    return HttpErrorAnswer(413, "a chunk's extension or the trailers are too large");
  }
  if (error == http::error::end_of_stream || error == beast::error::timeout ||
      error == asio::error::connection_reset) {
    return std::nullopt;
  }
  return HttpErrorAnswer(400, "the request is not HTTP/1.1");
}

std::optional<HttpResponse> RefuseStrangeCoding(
    const boost::beast::http::request_header<boost::beast::http::fields>& message) {
  namespace http = boost::beast::http;
  const auto count = message.count(http::field::transfer_encoding);
  if (count == 0) return std::nullopt;
  const auto coding = message[http::field::transfer_encoding];
  if (count == 1 && boost::beast::iequals(coding, "chunked")) return std::nullopt;
  return HttpErrorAnswer(501, "a body is sent as it is or as 'Transfer-Encoding: chunked'");
}

}  // namespace stepwell
