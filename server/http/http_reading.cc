#include "server/http/http_reading.h"

#include <boost/asio/error.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/error.hpp>
#include <string>

#include "absl/strings/match.h"
#include "server/http/http_routes.h"
#include "server/http/url_text.h"

namespace stepwell {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

namespace {

// The first that there is, or one more: several stay several, which is an error of their own, and as
// they came, for a copy in each could take a thousand times what was sent.
void SetHost(const std::string& host, HttpHeaders& headers) {
  for (auto& [name, value] : headers) {
    if (!absl::EqualsIgnoreCase(name, "Host")) continue;
    value = host;
    return;
  }
  headers.emplace_back("Host", host);
}

}  // namespace

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
  if (asked.authority) SetHost(std::string(*asked.authority), request.headers);
  request.is_http_1_1 = message.version() >= 11;
  return request;
}

beast::error_code ParseHttpHeader(beast::flat_buffer& buffer,
                                  http::request_parser<http::string_body>& parser,
                                  std::size_t bytes_max, std::size_t& taken) {
  beast::error_code error = http::error::need_more;
  if (buffer.size() > 0) {
    const std::size_t used = parser.put(buffer.data(), error);
    buffer.consume(used);
    taken += used;
  }
  const std::size_t waiting = error == http::error::need_more ? buffer.size() : 0;
  if (taken + waiting > bytes_max) error = http::error::header_limit;
  return error;
}

beast::error_code HttpEnd(const http::request_parser<http::string_body>& parser) {
  return parser.got_some() ? http::error::partial_message : http::error::end_of_stream;
}

std::optional<HttpResponse> AnswerHttpError(beast::error_code error,
                                            const http::request_parser<http::string_body>& parser,
                                            const HttpRoutes& routes, const HttpGuard& guard) {
  if (error == http::error::header_limit) return HttpErrorAnswer(431, "the header is too large");
  if (error == http::error::body_limit) {
    return routes.RefuseTooLarge(ReadHttpHead(parser.get()), guard, "the body is too large");
  }
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

HttpResponse RefuseOneMoreBody() {
  HttpResponse response = HttpErrorAnswer(503, "too many bodies of requests are held");
  response.headers = {{"Retry-After", "1"}};
  return response;
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

std::optional<HttpResponse> RefuseBody(http::request_parser<http::string_body>& parser) {
  if (parser.get().method() == http::verb::post) return std::nullopt;
  parser.body_limit(0);
  if (!parser.content_length()) return std::nullopt;
  return HttpErrorAnswer(400, "only a POST has a body");
}

}  // namespace stepwell
