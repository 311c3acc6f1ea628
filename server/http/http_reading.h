// HttpReading: what Boost.Beast read of a request, in our words: its header, or why it is none. Pure functions.
#pragma once

#include <boost/beast/core/error.hpp>
#include <boost/beast/http/message.hpp>
#include <optional>

#include "server/http/http_message.h"

namespace stepwell {

// Without its body. Where the target names the host, that is the Host.
HttpRequest ReadHttpHead(
    const boost::beast::http::request_header<boost::beast::http::fields>& message);

// What a client is told of `error`; nothing where it went, or said nothing for too long.
std::optional<HttpResponse> AnswerHttpError(boost::beast::error_code error);

// Of a body in a form that Beast takes for none at all: what follows could pass for another request. 501; nothing where it
// comes as it is or in chunks.
std::optional<HttpResponse> RefuseStrangeCoding(
    const boost::beast::http::request_header<boost::beast::http::fields>& message);

}  // namespace stepwell
