// The HTTP port over real sockets: what clients that are odd, slow or many get.
#include "server/http/http_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "tests/unit/server/raw_http.h"

namespace stepwell {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kGet[] = "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n";
constexpr char kLastGet[] = "GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
constexpr char kAlive[] = "{\"alive\":true}\n";

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpServer::Options options = {}, HttpHandler streams = nullptr) {
    server_ = std::make_unique<HttpServer>(options);
    server_->routes().Add("GET", "/livez", HttpDoor::kOpen, [](const HttpRequest&) {
      return HttpResponse{200, "application/json", "{\"alive\":true}\n"};
    });
    server_->routes().Add("POST", "/echo", HttpDoor::kOpen, [](const HttpRequest& request) {
      return HttpResponse{200, "text/plain", absl::StrCat(request.query, "|", request.body)};
    });
    server_->routes().Add(
        "GET", "/throws", HttpDoor::kOpen,
        [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("of the handler"); });
    server_->routes().Add("POST", "/called", HttpDoor::kSameOrigin, [](const HttpRequest& request) {
      return HttpResponse{200, "text/plain", absl::StrCat("called: ", request.body)};
    });
    if (streams) server_->routes().Add("GET", "/streams", HttpDoor::kOpen, std::move(streams));
    const absl::Status started = server_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }
  std::string Exchange(const std::string& request) {
    RawHttp client(server_->port());
    client.Send(request);
    return client.ReadAll();
  }
  // The server notices a little later that somebody went.
  std::string ExchangeOnceThereIsRoom() {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    std::string answer;
    do {
      answer = Exchange(kLastGet);
    } while (!absl::StartsWith(answer, "HTTP/1.1 200") && absl::Now() < deadline);
    return answer;
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, EachRequestGetsItsStatusAndItsWords) {
  HttpServer::Options options;
  options.header_bytes_max = 1024;
  options.body_bytes_max = 16;
  Start(options);
  struct Row {
    const char* name;
    std::string request;
    const char* status;
    const char* header;
    const char* body;
  };
  const std::string last = "Host: x\r\nConnection: close\r\n";
  const std::vector<Row> rows = {
      {"found", absl::StrCat("GET /livez?a=b HTTP/1.1\r\n", last, "\r\n"), "200 OK",
       "Cache-Control: no-store", kAlive},
      {"posted",
       absl::StrCat("POST /echo?q HTTP/1.1\r\n", last, "Content-Length: 16\r\n\r\n",
                    std::string(16, 'b')),
       "200 OK", "Content-Type: text/plain", "q|bbbbbbbbbbbbbbbb"},
      {"of 1997", "GET /livez HTTP/1.0\r\n\r\n", "200 OK", "Connection: close", kAlive},
      {"no such path", absl::StrCat("GET /nowhere HTTP/1.1\r\n", last, "\r\n"), "404 Not Found",
       "Content-Type: application/json", "{\"error\":\"no such path\"}\n"},
      {"above the root", absl::StrCat("GET /../livez HTTP/1.1\r\n", last, "\r\n"), "404 Not Found",
       "", "{\"error\":\"no such path\"}\n"},
      {"the absolute form", absl::StrCat("GET http://x/livez?a HTTP/1.1\r\n", last, "\r\n"),
       "200 OK", "", kAlive},
      {"in capitals, of an older HTTP", "GET HTTPS://X:80/livez HTTP/1.0\r\n\r\n", "200 OK", "",
       kAlive},
      {"the absolute form's query",
       absl::StrCat("POST http://x/echo?q=/a HTTP/1.1\r\n", last, "Content-Length: 1\r\n\r\nb"),
       "200 OK", "", "q=/a|b"},
      {"the absolute form without a path",
       absl::StrCat("GET http://x?q HTTP/1.1\r\n", last, "\r\n"), "404 Not Found", "",
       "{\"error\":\"no such path\"}\n"},
      {"another scheme", absl::StrCat("GET ftp://x/livez HTTP/1.1\r\n", last, "\r\n"),
       "404 Not Found", "", "{\"error\":\"no such path\"}\n"},
      {"no such method", absl::StrCat("DELETE /livez HTTP/1.1\r\n", last, "\r\n"),
       "405 Method Not Allowed", "Allow: GET, HEAD\r\n",
       "{\"error\":\"allowed here: GET, HEAD\"}\n"},
      {"only posted", absl::StrCat("GET /echo HTTP/1.1\r\n", last, "\r\n"),
       "405 Method Not Allowed", "Allow: POST\r\n", "{\"error\":\"allowed here: POST\"}\n"},
      {"a body that nobody asked for",
       absl::StrCat("GET /livez HTTP/1.1\r\n", last, "Content-Length: 3\r\n\r\nabc"),
       "400 Bad Request", "Connection: close", "{\"error\":\"only a POST has a body\"}\n"},
      {"one in chunks",
       absl::StrCat("GET /livez HTTP/1.1\r\n", last,
                    "Transfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n"),
       "413 Payload Too Large", "Connection: close", "{\"error\":\"the body is too large\"}\n"},
      {"one of no bytes in chunks",
       absl::StrCat("GET /livez HTTP/1.1\r\n", last, "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
       "200 OK", "", kAlive},
      {"a body of no bytes",
       absl::StrCat("GET /livez HTTP/1.1\r\n", last, "Content-Length: 0\r\n\r\n"), "200 OK", "",
       kAlive},
      {"no HTTP", "what is this\r\n\r\n", "400 Bad Request", "Connection: close",
       "{\"error\":\"the request is not HTTP/1.1\"}\n"},
      {"HTTP/2 at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "400 Bad Request", "Connection: close",
       "{\"error\":\"the request is not HTTP/1.1\"}\n"},
      {"two lengths",
       absl::StrCat("POST /echo HTTP/1.1\r\n", last,
                    "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc"),
       "400 Bad Request", "Connection: close", "{\"error\":\"the request is not HTTP/1.1\"}\n"},
      {"a large body",
       absl::StrCat("POST /echo HTTP/1.1\r\n", last, "Content-Length: 17\r\n\r\n",
                    std::string(17, 'b')),
       "413 Payload Too Large", "Connection: close", "{\"error\":\"the body is too large\"}\n"},
      {"a large body in chunks",
       absl::StrCat("POST /echo HTTP/1.1\r\n", last, "Transfer-Encoding: chunked\r\n\r\n11\r\n",
                    std::string(17, 'b'), "\r\n0\r\n\r\n"),
       "413 Payload Too Large", "Connection: close", "{\"error\":\"the body is too large\"}\n"},
      {"a large header",
       absl::StrCat("GET /livez HTTP/1.1\r\nX: ", std::string(1024, 'x'), "\r\n\r\n"),
       "431 Request Header Fields Too Large", "Connection: close",
       "{\"error\":\"the header is too large\"}\n"},
      {"a handler that throws", absl::StrCat("GET /throws HTTP/1.1\r\n", last, "\r\n"),
       "500 Internal Server Error", "X-Request-Id: ", "{\"error\":\"internal error\"}\n"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string answer = Exchange(row.request);
    EXPECT_THAT(answer, StartsWith(absl::StrCat("HTTP/1.1 ", row.status, "\r\n")));
    EXPECT_THAT(answer, HasSubstr(row.header));
    EXPECT_THAT(answer, EndsWith(absl::StrCat("\r\n\r\n", row.body)));
  }
}

TEST_F(HttpServerTest, WhatAHandlerThrewIsInTheLogByTheIdThatItsClientIsTold) {
  Start();
  ::testing::internal::CaptureStderr();
  const std::string answer =
      Exchange("GET /throws HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(answer, Not(HasSubstr("of the handler")));
  const absl::string_view head(answer.data(), answer.find("\r\n\r\n"));
  const auto at = head.find("X-Request-Id: ");
  ASSERT_NE(at, absl::string_view::npos) << answer;
  const absl::string_view id = head.substr(at + 14, 13);
  EXPECT_THAT(std::string(id), ::testing::MatchesRegex("[0-9a-f]{8}-[0-9a-f]{4}"));
  EXPECT_THAT(logged, HasSubstr("http_handler_failed"));
  EXPECT_THAT(logged, HasSubstr(std::string(id)));
  EXPECT_THAT(logged, HasSubstr("of the handler"));
}

TEST_F(HttpServerTest, HeadSaysWhatGetWouldWithoutTheBody) {
  Start();
  const std::string got = Exchange(kLastGet);
  const std::string head = Exchange("HEAD /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(got, head + kAlive);
  EXPECT_THAT(head, HasSubstr("Content-Length: 15\r\n"));
}

TEST_F(HttpServerTest, WhatFollowsAHeadOnTheConnectionHasItsBody) {
  Start();
  RawHttp client(server_->port());
  ASSERT_TRUE(client.Send("HEAD /livez HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_THAT(client.ReadUntil("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(client.Send("what is this\r\n\r\n"));
  const std::string answer = client.ReadAll();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(answer, EndsWith("{\"error\":\"the request is not HTTP/1.1\"}\n"));
}

TEST_F(HttpServerTest, RequestsSentTogetherAreAnsweredInOrder) {
  Start();
  const std::string answer = Exchange(
      absl::StrCat("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n",
                   "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nsecond", kLastGet));
  const auto first = answer.find(kAlive);
  const auto second = answer.find("|second");
  const auto third = answer.rfind(kAlive);
  ASSERT_NE(first, std::string::npos) << answer;
  ASSERT_NE(second, std::string::npos) << answer;
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
}

TEST_F(HttpServerTest, AConnectionIsKeptForTheNextRequest) {
  Start();
  RawHttp client(server_->port());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.Send(kGet)) << i;
    EXPECT_THAT(client.ReadUntil(kAlive), StartsWith("HTTP/1.1 200")) << i;
  }
}

TEST_F(HttpServerTest, WhatHasNoEndIsNotKept) {
  Start();
  const std::string chunked =
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string trailers = "0\r\n";
  while (trailers.size() < (1 << 20)) trailers += "X: some trailer\r\n";
  for (const std::string& endless : {absl::StrCat("1;", std::string(1 << 20, 'x')), trailers}) {
    SCOPED_TRACE(endless.substr(0, 2));
    // It may answer and hang up before all is sent.
    const std::string answer = Exchange(absl::StrCat(chunked, endless));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 413"));
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(Exchange(kLastGet), EndsWith(kAlive));
  }
  const std::string small = Exchange(
      "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n");
  EXPECT_THAT(small, EndsWith("|abc"));
}

TEST_F(HttpServerTest, WhoDribblesIsCutOffAndNobodyWaitsForIt) {
  HttpServer::Options options;
  options.request_timeout = absl::Milliseconds(500);
  Start(options);
  RawHttp slow(server_->port());
  const absl::Time begin = absl::Now();
  std::atomic<bool> cut_off = false;
  // A byte now and then must not extend the time of the whole request.
  Worker dribbler("dribbler", [&] {
    const std::string header = "GET /livez HTTP/1.1\r\nX: ";
    for (std::size_t i = 0; i < 2000 && slow.Send(i < header.size() ? header.substr(i, 1) : "x");
         ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    cut_off = true;
  });
  EXPECT_THAT(Exchange(kLastGet), EndsWith(kAlive)) << "one thread serves all";
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_TRUE(slow.closed());
  dribbler.Join();
  EXPECT_TRUE(cut_off);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(500));
  EXPECT_LT(absl::Now() - begin, absl::Seconds(15));
}

TEST_F(HttpServerTest, ABodyThatDribblesIsCutOff) {
  HttpServer::Options options;
  options.body_timeout = absl::Milliseconds(200);
  Start(options);
  RawHttp slow(server_->port());
  ASSERT_TRUE(slow.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"));
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_TRUE(slow.closed());
}

TEST_F(HttpServerTest, ALaterRequestThatDribblesIsCutOffAsTheFirst) {
  HttpServer::Options options;
  options.request_timeout = absl::Milliseconds(200);
  Start(options);
  RawHttp slow(server_->port());
  ASSERT_TRUE(slow.Send(kGet));
  EXPECT_THAT(slow.ReadUntil(kAlive), StartsWith("HTTP/1.1 200"));
  ASSERT_TRUE(slow.Send("GET /livez HT"));
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_TRUE(slow.closed()) << "the idle time is longer than a test's patience";
}

TEST_F(HttpServerTest, ALargeBodyIsAskedForBeforeItComes) {
  Start();
  RawHttp client(server_->port());
  ASSERT_TRUE(
      client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n"
                  "Connection: close\r\n\r\n"));
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  ASSERT_TRUE(client.Send("abc"));
  EXPECT_THAT(client.ReadAll(), EndsWith("|abc"));
}

// A page of another site has no megabytes read before it is told no.
TEST_F(HttpServerTest, WhoMayNotCallIsToldBeforeABodyComes) {
  Start();
  for (const auto& [request, answer] : std::vector<std::pair<std::string, std::string>>{
           {"POST /called HTTP/1.1\r\nHost: evil.example\r\n", "HTTP/1.1 403"},
           {"POST /called HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil.example\r\n",
            "HTTP/1.1 403"},
           {"POST /called HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n",
            "HTTP/1.1 403"},
           {"POST /called HTTP/1.1\r\nHost: evil.example\r\nExpect: 100-continue\r\n",
            "HTTP/1.1 403"},
           {"POST http://evil.example/called HTTP/1.1\r\nHost: localhost\r\n", "HTTP/1.1 403"},
           {"POST http://evil.example/called HTTP/1.0\r\n", "HTTP/1.1 403"},
           {"POST http://localhost@evil.example/called HTTP/1.1\r\nHost: localhost\r\n",
            "HTTP/1.1 403"},
           {"POST http://evil.example?@localhost/called HTTP/1.1\r\nHost: localhost\r\n",
            "HTTP/1.1 404"},
           {"POST http://localhost/called HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n",
            "HTTP/1.1 400"},
           {"POST /nowhere HTTP/1.1\r\nHost: localhost\r\n", "HTTP/1.1 404"},
           {"POST /livez HTTP/1.1\r\nHost: localhost\r\n", "HTTP/1.1 405"}}) {
    SCOPED_TRACE(request);
    RawHttp client(server_->port());
    ASSERT_TRUE(client.Send(absl::StrCat(request, "Content-Length: 3\r\n\r\n")));
    const std::string head = client.ReadUntil("\r\n\r\n");
    EXPECT_THAT(head, StartsWith(answer));
    EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
    // What it sends all the same is no next request.
    client.Send(absl::StrCat("abc", kGet));
    EXPECT_THAT(client.ReadAll(), Not(HasSubstr("HTTP/1.1")));
    EXPECT_TRUE(client.closed());
  }
  const std::string may = "POST /called HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
  EXPECT_THAT(Exchange(absl::StrCat(may, "Content-Length: 3\r\n\r\nabc")), EndsWith("called: abc"));
  // RFC 9112, 3.2.2: the name in the target counts, Host does not.
  const std::string whole =
      "POST http://localhost:80/called HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n";
  EXPECT_THAT(Exchange(absl::StrCat(whole, "Content-Length: 3\r\n\r\nabc")),
              EndsWith("called: abc"));
}

// Trailers are headers that come behind a body.
TEST_F(HttpServerTest, ATrailerChangesNothingOfWhoMayCall) {
  Start();
  const std::string chunked =
      "POST /called HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
      "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n";
  EXPECT_THAT(Exchange(absl::StrCat(chunked, "X: y\r\n\r\n")), EndsWith("called: abc"));
  EXPECT_THAT(Exchange(absl::StrCat(chunked, "Origin: http://evil.example\r\n\r\n")),
              StartsWith("HTTP/1.1 403"));
}

TEST_F(HttpServerTest, AClientThatGoesIsNoticedBehindWhatItHasSent) {
  std::shared_ptr<HttpExchange> held;
  for (const std::string& sent : {std::string("\n"), std::string(kGet), std::string(20'000, 'x')}) {
    SCOPED_TRACE(sent.substr(0, 8));
    absl::Notification begun;
    absl::Notification left;
    Start({}, [&](const HttpRequest&, const std::shared_ptr<HttpExchange>& exchange) {
      exchange->WhenGone([&] { left.Notify(); });
      held = exchange;
      begun.Notify();
    });
    {
      RawHttp client(server_->port());
      ASSERT_TRUE(client.Send("GET /streams HTTP/1.1\r\nHost: x\r\n\r\n"));
      ASSERT_TRUE(begun.WaitForNotificationWithTimeout(absl::Seconds(30)));
      ASSERT_TRUE(client.Send(sent));
      EXPECT_FALSE(left.HasBeenNotified());
    }
    EXPECT_TRUE(left.WaitForNotificationWithTimeout(absl::Seconds(30)));
    held.reset();
    server_->Stop();
  }
}

TEST_F(HttpServerTest, ARequestThatCameEarlyIsAnsweredInItsTurn) {
  absl::Notification begun;
  std::shared_ptr<HttpExchange> held;
  Start({}, [&](const HttpRequest&, const std::shared_ptr<HttpExchange>& exchange) {
    held = exchange;
    begun.Notify();
  });
  RawHttp client(server_->port());
  ASSERT_TRUE(client.Send("GET /streams HTTP/1.1\r\nHost: x\r\n\r\n"));
  ASSERT_TRUE(begun.WaitForNotificationWithTimeout(absl::Seconds(30)));
  for (const char byte : std::string(kGet)) ASSERT_TRUE(client.Send(std::string(1, byte)));
  ASSERT_TRUE(client.Send(kLastGet));
  held->Answer({200, "text/plain", "at last"});
  held.reset();
  const std::string answers = client.ReadAll();
  EXPECT_THAT(answers, HasSubstr("\r\n\r\nat lastHTTP/1.1 200"));
  EXPECT_THAT(answers, EndsWith(kAlive));
}

TEST_F(HttpServerTest, AnAddressHasItsShareOfTheConnections) {
  HttpServer::Options options;
  options.connections_per_address_max = 1;
  Start(options);
  auto first = std::make_unique<RawHttp>(server_->port());
  ASSERT_TRUE(first->Send(kGet));
  EXPECT_THAT(first->ReadUntil(kAlive), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(RawHttp(server_->port()).ReadAll(), StartsWith("HTTP/1.1 503"));
  first.reset();
  EXPECT_THAT(ExchangeOnceThereIsRoom(), EndsWith(kAlive));
}

TEST_F(HttpServerTest, AnIdleConnectionEnds) {
  HttpServer::Options options;
  options.idle_timeout = absl::Milliseconds(200);
  Start(options);
  RawHttp idle(server_->port());
  ASSERT_TRUE(idle.Send(kGet));
  EXPECT_THAT(idle.ReadUntil(kAlive), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(idle.ReadAll(), "");
  EXPECT_TRUE(idle.closed());
}

TEST_F(HttpServerTest, OneConnectionTooManyIsClosedAndThereIsRoomAgain) {
  HttpServer::Options options;
  options.connections_max = 2;
  Start(options);
  auto first = std::make_unique<RawHttp>(server_->port());
  RawHttp second(server_->port());
  for (RawHttp* held : {first.get(), &second}) {
    ASSERT_TRUE(held->Send(kGet));
    EXPECT_THAT(held->ReadUntil(kAlive), StartsWith("HTTP/1.1 200"));
  }
  RawHttp third(server_->port());
  EXPECT_THAT(third.ReadAll(), StartsWith("HTTP/1.1 503"));
  EXPECT_TRUE(third.closed());
  ASSERT_TRUE(second.Send(kGet));
  EXPECT_THAT(second.ReadUntil(kAlive), StartsWith("HTTP/1.1 200")) << "others are served";
  first.reset();
  EXPECT_THAT(ExchangeOnceThereIsRoom(), EndsWith(kAlive));
}

// By the table of descriptors, as server and test are one process.
TEST_F(HttpServerTest, AConnectionIsWatchedByTheKernelAndInheritedByNobody) {
  Start();
  RawHttp client(server_->port());
  ASSERT_TRUE(client.Send(kGet));
  EXPECT_THAT(client.ReadUntil(kAlive), StartsWith("HTTP/1.1 200"));
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in us{};
    sockaddr_in peer{};
    socklen_t bytes = sizeof us;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&us), &bytes) != 0) continue;
    if (us.sin_family != AF_INET || ntohs(us.sin_port) != server_->port()) continue;
    bytes = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) continue;
    ++found;
    EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    int value = 0;
    bytes = sizeof value;
    EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &bytes), 0);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &bytes), 0);
    EXPECT_EQ(value, 60'000);
  }
  EXPECT_EQ(found, 1);
}

TEST_F(HttpServerTest, APartOfAStreamMayTakeLongWhileItsClientTakesSomeOfIt) {
  HttpServer::Options options;
  options.stall_timeout = absl::Seconds(2);
  // More than sockets' buffers hold.
  constexpr std::size_t kPartBytes = 64 << 20;
  Start(options, [](const HttpRequest&, const std::shared_ptr<HttpExchange>& exchange) {
    exchange->Begin({200, "text/plain", ""});
    exchange->Write(SharedBytes(std::string(kPartBytes, 'x')), [exchange] { exchange->End(""); });
  });
  RawHttp client(server_->port());
  ASSERT_TRUE(client.Send("GET /streams HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
  EXPECT_THAT(client.ReadUntil("\r\n\r\n4000000\r\n"), StartsWith("HTTP/1.1 200"));
  // Six seconds for it, with looks a fortieth of the stall apart.
  std::size_t taken = 0;
  while (taken < kPartBytes) {
    const std::size_t got =
        client.ReadBytes(std::min<std::size_t>(512 << 10, kPartBytes - taken)).size();
    ASSERT_GT(got, 0) << taken;
    taken += got;
    absl::SleepFor(absl::Milliseconds(50));
  }
  EXPECT_THAT(client.ReadAll(), EndsWith("\r\n0\r\n\r\n"));
}

TEST_F(HttpServerTest, AStopEndsConnectionsThatAreOpen) {
  Start();
  RawHttp open(server_->port());
  ASSERT_TRUE(open.Send(kGet));
  EXPECT_THAT(open.ReadUntil(kAlive), StartsWith("HTTP/1.1 200"));
  server_->Stop();
  server_->Stop();
  server_.reset();
  EXPECT_EQ(open.ReadAll(), "");
  EXPECT_TRUE(open.closed());
}

}  // namespace
}  // namespace stepwell
