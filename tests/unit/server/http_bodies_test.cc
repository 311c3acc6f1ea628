// Bodies of requests over real sockets: how much of them is held in all, and how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "server/http/http_server.h"
#include "tests/unit/server/raw_http.h"

namespace stepwell {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpBodiesTest : public ::testing::Test {
 protected:
  HttpBodiesTest() {
    HttpServer::Options options;
    options.held_body_bytes_max = 300'000;
    server_ = std::make_unique<HttpServer>(options);
    server_->routes().Add("POST", "/echo", HttpDoor::kOpen, [](const HttpRequest& request) {
      return HttpResponse{200, "text/plain", absl::StrCat("|", request.body)};
    });
  }
  std::string Exchange(const std::string& request) {
    RawHttp client(server_->port());
    client.Send(request);
    return client.ReadAll();
  }

  std::unique_ptr<HttpServer> server_;
};

// Each of the connections may bring 4 MiB.
TEST_F(HttpBodiesTest, BodiesOfRequestsHaveABoundInAll) {
  ASSERT_TRUE(server_->Start().ok());
  const std::string post = "POST /echo HTTP/1.1\r\nHost: x\r\n";
  const std::string large = "Content-Length: 200000\r\n";
  const std::string body(200'000, 'b');
  {
    // The first takes its time, and no byte of its body has come.
    RawHttp slow(server_->port());
    ASSERT_TRUE(slow.Send(absl::StrCat(post, large, "Expect: 100-continue\r\n\r\n")));
    slow.ReadUntil("100 Continue\r\n\r\n");
    for (const std::string& second :
         {absl::StrCat(post, large, "\r\n"),
          absl::StrCat(post, large, "Expect: 100-continue\r\n\r\n"),
          absl::StrCat(post, "Transfer-Encoding: chunked\r\n\r\n30d40\r\n", body)}) {
      RawHttp client(server_->port());
      client.Send(second);
      const std::string answer = client.ReadUntil("\r\n\r\n");
      EXPECT_THAT(answer, StartsWith("HTTP/1.1 503")) << second.substr(0, 99);
      EXPECT_THAT(answer, HasSubstr("Retry-After: 1\r\n"));
      EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    }
    EXPECT_THAT(Exchange(absl::StrCat(post, "Connection: close\r\nContent-Length: 1\r\n\r\nb")),
                EndsWith("|b"))
        << "what is small goes";
    ASSERT_TRUE(slow.Send(body));
    EXPECT_THAT(slow.ReadUntil(absl::StrCat("|", body)), StartsWith("HTTP/1.1 200"));
    // It keeps its connection, and holds nothing.
    EXPECT_THAT(Exchange(absl::StrCat(post, large, "Connection: close\r\n\r\n", body)),
                StartsWith("HTTP/1.1 200"));
    ASSERT_TRUE(slow.Send(
        absl::StrCat(post, "Transfer-Encoding: chunked\r\n\r\n30d40\r\n", body, "\r\n0\r\n\r\n")));
    EXPECT_THAT(slow.ReadUntil(absl::StrCat("|", body)), StartsWith("HTTP/1.1 200"));
    ASSERT_TRUE(slow.Send(absl::StrCat(post, large, "\r\n")));
  }
  // It went in the midst of a body.
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  std::string answer;
  do {
    answer = Exchange(absl::StrCat(post, large, "Connection: close\r\n\r\n", body));
  } while (!absl::StartsWith(answer, "HTTP/1.1 200") && absl::Now() < deadline);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200"));
}

// Who asks whether a master lives shows no token.
TEST_F(HttpBodiesTest, WhatHasNoBodyTakesNoRoomForOne) {
  server_->routes().Add("GET", "/livez", HttpDoor::kOpen,
                        [](const HttpRequest&) { return HttpResponse{}; });
  ASSERT_TRUE(server_->Start().ok());
  std::vector<std::unique_ptr<RawHttp>> strangers;
  for (const char* method : {"GET", "HEAD", "GET", "HEAD"}) {
    RawHttp& one = *strangers.emplace_back(std::make_unique<RawHttp>(server_->port()));
    one.Send(absl::StrCat(method, " /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 290000\r\n\r\n"));
    EXPECT_THAT(one.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(Exchange(absl::StrCat("POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                                      "Content-Length: 290000\r\n\r\n",
                                      std::string(290'000, 'b'))),
                StartsWith("HTTP/1.1 200"));
  }
}

TEST_F(HttpBodiesTest, ABodyMayEndByteByByte) {
  ASSERT_TRUE(server_->Start().ok());
  RawHttp slow(server_->port());
  slow.SendAtOnce();
  const std::string sent =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "0\r\n\r\n";
  for (const char byte : sent) {
    ASSERT_TRUE(slow.Send(std::string(1, byte)));
    // As a rule it is read meanwhile, and not with the next.
    EXPECT_THAT(
        Exchange(
            "POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nb"),
        EndsWith("|b"));
  }
  EXPECT_THAT(slow.ReadAll(), StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpBodiesTest, ABodyIsHeldUntilItsCallIsAnswered) {
  absl::Mutex mu;
  std::vector<std::shared_ptr<HttpExchange>> waiting;
  server_->routes().Add(
      "POST", "/waits", HttpDoor::kOpen,
      HttpHandler([&](const HttpRequest&, const std::shared_ptr<HttpExchange>& exchange) {
        const absl::MutexLock lock(&mu);
        waiting.push_back(exchange);
      }));
  ASSERT_TRUE(server_->Start().ok());
  const std::string post =
      absl::StrCat("POST /waits HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n",
                   std::string(200'000, 'b'));
  const auto wait_for = [&](std::size_t count) {
    const absl::MutexLock lock(&mu);
    const auto is_there = [&] { return waiting.size() == count; };
    EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&is_there), absl::Seconds(30)));
  };
  RawHttp first(server_->port());
  ASSERT_TRUE(first.Send(post));
  wait_for(1);
  EXPECT_THAT(Exchange(post), StartsWith("HTTP/1.1 503"));
  {
    const absl::MutexLock lock(&mu);
    waiting[0]->Begin({200, "text/plain", ""});
  }
  EXPECT_THAT(first.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  // Its call has taken it, though the stream goes on.
  RawHttp second(server_->port());
  ASSERT_TRUE(second.Send(post));
  wait_for(2);
  const absl::MutexLock lock(&mu);
  waiting[0]->End("");
  waiting[1]->Answer({200, "text/plain", "|"});
  waiting.clear();
}

}  // namespace
}  // namespace stepwell
