#include "server/http/http_reading.h"

#include <gtest/gtest.h>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http.hpp>
#include <string>

namespace stepwell {
namespace {

namespace http = boost::beast::http;

// Each field whole, and one byte of the next, which says that it does not go on: the parser has taken
// all of them, and holds next to nothing.
TEST(HttpReadingTest, AHeaderHasNoMoreBytesThanItMayHoweverTheyCome) {
  boost::beast::flat_buffer buffer;
  http::request_parser<http::string_body> parser;
  parser.header_limit(1000);
  std::size_t taken = 0;
  std::size_t sent = 0;
  boost::beast::error_code read = http::error::need_more;
  const auto send = [&](const std::string& text) {
    buffer.commit(boost::asio::buffer_copy(buffer.prepare(text.size()), boost::asio::buffer(text)));
    sent += text.size();
    read = ParseHttpHeader(buffer, parser, 1000, taken);
  };
  send("GET /livez HTTP/1.1\r\nX");
  while (read == http::error::need_more && sent < 5000)
    send("-A: " + std::string(93, 'a') + "\r\nX");
  EXPECT_EQ(read, http::error::header_limit);
  EXPECT_LT(sent, 1200U);
}

// Beast 1.81 asserts that five bytes of a last chunk are there once its line was read.
TEST(HttpReadingTest, ALastChunkMayComeByteByByte) {
  for (const std::string& body : {std::string("0\r\n\r\n"), std::string("000\r\n\r\n"),
                                  std::string("3\r\nabc\r\n0\r\nX: y\r\n\r\n")}) {
    const std::string sent =
        "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + body;
    boost::beast::flat_buffer buffer;
    http::request_parser<http::string_body> parser;
    parser.eager(true);
    for (const char byte : sent) {
      ASSERT_FALSE(parser.is_done()) << sent;
      buffer.commit(boost::asio::buffer_copy(buffer.prepare(1), boost::asio::buffer(&byte, 1)));
      boost::beast::error_code error;
      buffer.consume(parser.put(buffer.data(), error));
      ASSERT_TRUE(!error || error == http::error::need_more) << error.message();
    }
    EXPECT_TRUE(parser.is_done()) << sent;
    EXPECT_EQ(parser.get().body(), body[0] == '3' ? "abc" : "");
  }
}

// A target may be as long as a header, which has room for a thousand names.
TEST(HttpReadingTest, ATargetsHostIsNotCopiedIntoEachHostHeader) {
  http::request_header<http::fields> head;
  head.method(http::verb::get);
  const std::string host(8000, 'h');
  head.target("http://" + host + "/livez");
  for (int i = 0; i < 1000; ++i) head.insert(http::field::host, "a");
  const HttpRequest request = ReadHttpHead(head);
  EXPECT_EQ(request.Header("Host"), host);
  EXPECT_EQ(request.HeaderCount("Host"), 1000) << "several stay several, and are refused";
  std::size_t bytes = 0;
  for (const auto& [name, value] : request.headers) bytes += name.size() + value.size();
  EXPECT_LT(bytes, 16U << 10);
}

TEST(HttpReadingTest, ATargetsHostIsTheHostAlsoWhereThereIsNone) {
  http::request_header<http::fields> head;
  head.method(http::verb::get);
  head.target("http://localhost:7818");
  const HttpRequest request = ReadHttpHead(head);
  EXPECT_EQ(request.Header("Host"), "localhost:7818");
  EXPECT_EQ(request.HeaderCount("Host"), 1);
  EXPECT_EQ(request.path, "/");
}

}  // namespace
}  // namespace stepwell
