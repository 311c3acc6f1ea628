// HttpReading: what Boost.Beast read of a request, in our words: its header, or why it is none.
// Pure functions, but for the one that reads.
#pragma once

#include <boost/asio/error.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>
#include <optional>
#include <utility>

#include "server/http/http_message.h"

namespace stepwell {

class HttpGuard;
class HttpRoutes;

// Beside a header: what is read at once. No line of a request may be longer, nor its trailers in
// all.
inline constexpr std::size_t kHttpReadBytesMax = 64 << 10;

// Reads on in the header of `parser`, and takes what it has read off `buffer`. need_more until it
// is whole; header_limit where it is longer than `bytes_max`, of which `taken` counts what was
// taken off (0 at first): Beast's own limit is only of what it holds at once, and headers that come
// one by one would have no end.
boost::beast::error_code ParseHttpHeader(
    boost::beast::flat_buffer& buffer,
    boost::beast::http::request_parser<boost::beast::http::string_body>& parser,
    std::size_t bytes_max, std::size_t& taken);

// What the end of what a client sends is for `parser`.
boost::beast::error_code HttpEnd(
    const boost::beast::http::request_parser<boost::beast::http::string_body>& parser);

// ParseHttpHeader until it has an end, of what `stream` gives. `done` keeps all of them alive, and
// may be called at once.
template <typename Stream, typename Done>
void AsyncReadHttpHeader(
    Stream& stream, boost::beast::flat_buffer& buffer,
    boost::beast::http::request_parser<boost::beast::http::string_body>& parser,
    std::size_t bytes_max, Done done, std::size_t taken = 0) {
  const boost::beast::error_code read = ParseHttpHeader(buffer, parser, bytes_max, taken);
  if (read != boost::beast::http::error::need_more) return done(read);
  stream.async_read_some(buffer.prepare(boost::beast::read_size(buffer, kHttpReadBytesMax)),
                         [&stream, &buffer, &parser, bytes_max, done = std::move(done), taken](
                             boost::beast::error_code error, std::size_t count) mutable {
                           if (error == boost::asio::error::eof) error = HttpEnd(parser);
                           if (error) return done(error);
                           buffer.commit(count);
                           AsyncReadHttpHeader(stream, buffer, parser, bytes_max, std::move(done),
                                               taken);
                         });
}

// Without its body. Where the target names the host, that is the Host.
HttpRequest ReadHttpHead(
    const boost::beast::http::request_header<boost::beast::http::fields>& message);

// What a client is told of `error`, by its route where the body is too large; nothing where it went, or said nothing
// for too long.
std::optional<HttpResponse> AnswerHttpError(
    boost::beast::error_code error,
    const boost::beast::http::request_parser<boost::beast::http::string_body>& parser,
    const HttpRoutes& routes, const HttpGuard& guard);

// Where there is no room for a body beside those of others.
HttpResponse RefuseOneMoreBody();

// Of a body in a form that Beast takes for none at all: what follows could pass for another request. 501; nothing where it
// comes as it is or in chunks.
std::optional<HttpResponse> RefuseStrangeCoding(
    const boost::beast::http::request_header<boost::beast::http::fields>& message);

// Of a request that goes on behind its header. Only a POST has a body: 400 where another announces one, so that nobody takes room by
// asking whether a master lives, which wants no token; else `parser` takes none but one of no bytes, which proxies make of chunks.
std::optional<HttpResponse> RefuseBody(
    boost::beast::http::request_parser<boost::beast::http::string_body>& parser);

}  // namespace stepwell
