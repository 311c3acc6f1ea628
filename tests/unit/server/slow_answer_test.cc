// Clients that take their answer slowly: a stall ends it, and so does an end of all patience, however often some
// of it was taken.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "base/steady_time.h"
#include "server/http/http_exchange.h"
#include "server/http/http_server.h"
#include "tests/unit/server/raw_http.h"

namespace stepwell {
namespace {

// Ten stalls are the end of all patience.
constexpr absl::Duration kStall = absl::Milliseconds(400);
// More than sockets' buffers hold, and than is taken in ten stalls.
constexpr std::size_t kAnswerBytes = 256 << 20;
// In 10 ms. The kernel asks for more once a third of the socket's buffer is free, which is over a MiB: a tenth of what a
// stall brings.
constexpr std::size_t kSlowBytes = 256 << 10;

enum class How { kAnswer, kPartOfAStream };

struct Slowly {
  // Until the server gave it up, from when it had its answer.
  absl::Duration patience;
  std::size_t taken = 0;
};

// Takes `bytes` each 10 ms until the server has had enough, or there are no more.
Slowly Take(How how, std::size_t bytes) {
  absl::Notification gone;
  SteadyTime begun;
  SteadyTime ended;
  HttpServer::Options options;
  options.stall_timeout = kStall;
  HttpServer server(options);
  server.routes().Add(
      "GET", "/large", HttpDoor::kOpen,
      HttpHandler([&](const HttpRequest&, const std::shared_ptr<HttpExchange>& exchange) {
        exchange->WhenGone([&] {
          ended = SteadyTime::Now();
          gone.Notify();
        });
        begun = SteadyTime::Now();
        std::string text(kAnswerBytes, 'x');
        if (how == How::kAnswer) return exchange->Answer({200, "text/plain", std::move(text)});
        exchange->Begin({200, "text/plain", ""});
        exchange->Write(SharedBytes(std::move(text)), [exchange] { exchange->End(""); });
      }));
  const absl::Status started = server.Start();
  EXPECT_TRUE(started.ok()) << started;
  Slowly slowly;
  {
    RawHttp client(server.port());
    EXPECT_TRUE(client.Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    client.ReadUntil("\r\n\r\n");
    while (!gone.HasBeenNotified() && slowly.taken < kAnswerBytes) {
      const std::size_t count = client.ReadBytes(bytes).size();
      if (count == 0) break;
      slowly.taken += count;
      absl::SleepFor(absl::Milliseconds(10));
    }
    EXPECT_TRUE(gone.WaitForNotificationWithTimeout(absl::Seconds(10)))
        << "it was given " << slowly.taken << " bytes";
  }
  server.Stop();
  slowly.patience = ended - begun;
  return slowly;
}

TEST(SlowAnswerTest, EndsAfterTenStallsHoweverOftenSomeOfItIsTaken) {
  for (const How how : {How::kAnswer, How::kPartOfAStream}) {
    SCOPED_TRACE(how == How::kAnswer ? "answer" : "part of a stream");
    const Slowly slowly = Take(how, kSlowBytes);
    EXPECT_LT(slowly.taken, kAnswerBytes);
    EXPECT_GE(slowly.patience, 10 * kStall);
    EXPECT_LT(slowly.patience, 20 * kStall);
  }
}

// A byte now and then opens no window: nothing more of it leaves, which is a stall.
TEST(SlowAnswerTest, EndsAfterAStallWhereAByteIsTakenNowAndThen) {
  for (const How how : {How::kAnswer, How::kPartOfAStream}) {
    SCOPED_TRACE(how == How::kAnswer ? "answer" : "part of a stream");
    const Slowly slowly = Take(how, 1);
    EXPECT_LT(slowly.taken, 1000U);
    EXPECT_GE(slowly.patience, kStall);
    EXPECT_LT(slowly.patience, 9 * kStall);
  }
}

}  // namespace
}  // namespace stepwell
