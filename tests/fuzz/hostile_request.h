// HostileRequest: any bytes as what a client sends to the HTTP port: through Boost.Beast's parser
// as a connection has it, within its limits, to the words of a request that we go by, and on to the
// routes. Whether they come at once or in pieces, and whatever the limits, they are the same
// requests, none of them longer than its limits, and each ends where the next begins. Header only;
// pure.
#pragma once

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "base/check.h"
#include "server/http/http_guard.h"
#include "server/http/http_reading.h"
#include "server/http/http_routes.h"
#include "server/http/http_server.h"
#include "tests/fuzz/hostile_bytes.h"
#include "tests/fuzz/hostile_http.h"

namespace stepwell::testing {

namespace beast = boost::beast;
using RequestParser = beast::http::request_parser<beast::http::string_body>;

// A client that sends so many bytes at a time, and then no more.
class HostileClient {
 public:
  HostileClient(std::string_view bytes, std::size_t piece) : bytes_(bytes), piece_(piece) {}

  template <typename Buffers>
  std::size_t read_some(const Buffers& buffers, beast::error_code& error) {
    error = {};
    if (bytes_.empty()) error = boost::asio::error::eof;
    const std::size_t count = boost::asio::buffer_copy(
        buffers, boost::asio::buffer(bytes_.data(), std::min(piece_, bytes_.size())));
    bytes_.remove_prefix(count);
    return count;
  }
  template <typename Buffers>
  std::size_t read_some(const Buffers& buffers) {
    beast::error_code error;
    return read_some(buffers, error);
  }

  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  const std::size_t piece_;
};

struct RequestLimits {
  std::uint32_t header_bytes_max = 0;
  std::uint64_t body_bytes_max = 0;
  std::size_t read_bytes_max = 0;
};
inline RequestLimits OfTheServer() {
  const HttpServer::Options options;
  return {options.header_bytes_max, options.body_bytes_max, kHttpReadBytesMax};
}
inline constexpr RequestLimits kNarrowLimits = {256, 512, 256};

// What a connection made of its client's bytes.
struct HeardRequests {
  std::vector<HttpRequest> requests;
  // Of what was no request, or too large for one; 0 = the client was done, and is told nothing.
  int refused_as = 0;
};

// All that is compared, looked up or told of a request is its own, and of characters that lines are
// made of.
inline void CheckHead(const beast::http::request_header<beast::http::fields>& message,
                      const HttpRequest& head, const RequestLimits& limits) {
  const auto is_token = [](const std::string& text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
             std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    });
  };
  STEPWELL_CHECK(is_token(head.method));
  const std::string target = head.path + head.query;
  STEPWELL_CHECK(std::all_of(target.begin(), target.end(), [](char c) {
    return !absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != ' ';
  }));
  std::size_t bytes = target.size();
  for (const auto& [name, value] : head.headers) {
    STEPWELL_CHECK(is_token(name));
    STEPWELL_CHECK(value.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos);
    bytes += name.size() + value.size();
  }
  // Trailers are headers, too. The name of the host stands once more where the target has it.
  STEPWELL_CHECK(bytes <= limits.header_bytes_max * 2 + limits.read_bytes_max);
  const std::string lower =
      absl::AsciiStrToLower({message.target().data(), message.target().size()});
  const bool names_host = lower.rfind("http://", 0) == 0 || lower.rfind("https://", 0) == 0;
  if (names_host) {
    const std::string behind = lower.substr(lower.find("//") + 2);
    STEPWELL_CHECK(absl::AsciiStrToLower(std::string(head.Header("Host"))) ==
                   behind.substr(0, behind.find_first_of("/?")));
  }
  const int count = static_cast<int>(message.count("Host"));
  STEPWELL_CHECK(head.HeaderCount("Host") == (names_host ? std::max(count, 1) : count));
}

// What has a body says how long it is, in one way. Else what follows it could pass for another
// request.
inline void CheckLength(const RequestParser& parser, std::string_view sent, std::size_t consumed,
                        const RequestLimits& limits) {
  const std::size_t body = parser.get().body().size();
  STEPWELL_CHECK(body <= limits.body_bytes_max);
  const bool says_coding = parser.get().count("Transfer-Encoding") > 0;
  STEPWELL_CHECK(parser.chunked() == says_coding);
  if (parser.chunked()) return;
  const auto length = parser.content_length();
  STEPWELL_CHECK(body == length.value_or(0));
  STEPWELL_CHECK(consumed == sent.find("\r\n\r\n") + 4 + body);
  STEPWELL_CHECK(sent.substr(consumed - body, body) == parser.get().body());
}

// As HttpConnection reads one request behind the other.
class HostileConnection {
 public:
  HostileConnection(std::string_view bytes, const RequestLimits& limits, std::size_t piece)
      : bytes_(bytes),
        limits_(limits),
        client_(bytes, piece),
        buffer_(limits.header_bytes_max + limits.read_bytes_max) {}

  HeardRequests Hear() {
    while (ReadOne()) {
    }
    return std::move(heard_);
  }

 private:
  std::size_t consumed() const { return bytes_.size() - client_.left() - buffer_.size(); }

  bool Refused(beast::error_code error, const RequestParser& parser) {
    const auto answer =
        error ? AnswerHttpError(error, parser, routes_, guard_) : RefuseStrangeCoding(parser.get());
    if (!error && !answer) return false;
    if (answer) {
      heard_.refused_as = answer->status;
      CheckShown(absl::InvalidArgumentError(answer->body));
      STEPWELL_CHECK(answer->status == 400 || answer->status == 413 || answer->status == 431 ||
                     (!error && answer->status == 501));
    } else {
      STEPWELL_CHECK(consumed() == bytes_.size());
    }
    return true;
  }

  // False: nothing follows.
  bool ReadOne() {
    const std::string_view sent = bytes_.substr(consumed());
    const std::size_t before = consumed();
    RequestParser parser;
    parser.header_limit(limits_.header_bytes_max);
    parser.body_limit(limits_.body_bytes_max);
    beast::error_code error;
    std::size_t taken = 0;
    while (!error) {
      error = ParseHttpHeader(buffer_, parser, limits_.header_bytes_max, taken);
      if (error != beast::http::error::need_more) break;
      const auto room = buffer_.prepare(beast::read_size(buffer_, limits_.read_bytes_max));
      buffer_.commit(client_.read_some(room, error));
      if (error) error = HttpEnd(parser);
    }
    if (Refused(error, parser)) return false;
    CheckHead(parser.get(), ReadHttpHead(parser.get()), limits_);
    if (const auto answer = parser.is_done() ? std::nullopt : RefuseBody(parser)) {
      heard_.refused_as = answer->status;
      return false;
    }
    parser.eager(true);
    while (!parser.is_done()) {
      beast::http::read_some(client_, buffer_, parser, error);
      if (Refused(error, parser)) return false;
      STEPWELL_CHECK(parser.get().body().size() <= limits_.body_bytes_max);
    }
    // Trailers may have come.
    if (Refused({}, parser)) return false;
    CheckLength(parser, sent, consumed() - before, limits_);
    HttpRequest request = ReadHttpHead(parser.get());
    CheckHead(parser.get(), request, limits_);
    request.body = std::move(parser.get().body());
    STEPWELL_CHECK(request.body.empty() || request.method == "POST");
    heard_.requests.push_back(std::move(request));
    return parser.get().keep_alive();
  }

  const std::string_view bytes_;
  const RequestLimits limits_;
  const HttpRoutes routes_;
  const HttpGuard guard_{HttpGuard::Options{}};
  HostileClient client_;
  beast::flat_buffer buffer_;
  HeardRequests heard_;
};

inline bool IsSame(const HttpRequest& a, const HttpRequest& b) {
  return a.method == b.method && a.path == b.path && a.query == b.query && a.headers == b.headers &&
         a.body == b.body && a.is_http_1_1 == b.is_http_1_1;
}

// The first byte says how many come at a time.
inline void ReadHostileRequest(std::string_view bytes) {
  HostileBytes input(bytes);
  const std::size_t least = input.Take<std::uint8_t>();
  const std::string_view sent = input.rest();
  // Of what is long not byte by byte: that only takes longer.
  const std::size_t piece = std::max<std::size_t>({1, least, sent.size() / 256});
  const HeardRequests whole = HostileConnection(sent, OfTheServer(), sent.size() + 1).Hear();
  const HeardRequests pieces = HostileConnection(sent, OfTheServer(), piece).Hear();
  // What is wrong and too long is either, as it came.
  const auto is_cut = [](const HeardRequests& heard) {
    return heard.refused_as == 413 || heard.refused_as == 431;
  };
  STEPWELL_CHECK(whole.refused_as == pieces.refused_as ||
                 (whole.refused_as != 0 && is_cut(pieces)) ||
                 (pieces.refused_as != 0 && is_cut(whole)));
  STEPWELL_CHECK(std::equal(whole.requests.begin(), whole.requests.end(), pieces.requests.begin(),
                            pieces.requests.end(), IsSame));
  // Where there is less room, the same is heard, up to what is too large.
  const HeardRequests narrow = HostileConnection(sent, kNarrowLimits, piece).Hear();
  STEPWELL_CHECK(narrow.requests.size() <= whole.requests.size());
  STEPWELL_CHECK(
      std::equal(narrow.requests.begin(), narrow.requests.end(), whole.requests.begin(), IsSame));
  STEPWELL_CHECK(is_cut(narrow) || (narrow.requests.size() == whole.requests.size() &&
                                    narrow.refused_as == pieces.refused_as));
  for (const HttpRequest& request : whole.requests) ReadHostileHead(request);
}

}  // namespace stepwell::testing
