// Servers that refuse whoever connects, as PostgreSQL does where it stops, and sockets that stand for sessions.
#include "storage/pg_stop_watch.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/worker.h"
#include "tests/support/child_process.h"
#include "tests/support/loopback.h"

namespace stepwell {
namespace {

using testing::Eventually;

constexpr char kStops[] = "57P03";
constexpr char kFull[] = "53300";

// Says the same to all who come.
class RefusingServer {
 public:
  explicit RefusingServer(const char* sqlstate) : sqlstate_(sqlstate) {
    sockaddr_in address = testing::Loopback(0);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listening_, name, size), 0);
    EXPECT_EQ(listen(listening_, 16), 0);
    EXPECT_EQ(getsockname(listening_, name, &size), 0);
    port_ = ntohs(address.sin_port);
    worker_ = Worker("refusing", [this] { Serve(); });
  }
  ~RefusingServer() {
    shutdown(listening_, SHUT_RDWR);
    worker_.Join();
    close(listening_);
  }
  void set_sqlstate(const char* sqlstate) { sqlstate_ = sqlstate; }
  int port() const { return port_; }
  int visitor_count() const { return visitor_count_; }

 private:
  void Serve() {
    for (int visitor = 0; (visitor = accept(listening_, nullptr, nullptr)) >= 0;) {
      ++visitor_count_;
      char asked[1024];
      if (recv(visitor, asked, sizeof(asked), 0) > 0) {
        std::string fields = "SFATAL";
        for (const std::string& field : {std::string("VFATAL"), absl::StrCat("C", sqlstate_.load()),
                                         std::string("Mnobody may come in"), std::string()}) {
          fields += '\0' + field;
        }
        fields += '\0';
        const std::uint32_t size = htonl(static_cast<std::uint32_t>(fields.size() + 4));
        const std::string answer =
            "E" + std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + fields;
        (void)send(visitor, answer.data(), answer.size(), MSG_NOSIGNAL);
      }
      close(visitor);
    }
  }

  std::atomic<const char*> sqlstate_;
  std::atomic<int> visitor_count_ = 0;
  int listening_ = -1;
  int port_ = 0;
  Worker worker_;
};

std::string UrlOf(const std::string& ports) {
  return absl::StrCat("host=127.0.0.1", ports.find(',') == std::string::npos ? "" : ",127.0.0.1",
                      " port=", ports, " user=u sslmode=disable gssencmode=disable");
}

// A session between two sockets.
class Session {
 public:
  explicit Session(PgSessions& sessions) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_), 0);
    place_ = sessions.Enter(ends_[0], sessions.era());
  }
  ~Session() {
    place_.reset();
    for (const int end : ends_) close(end);
  }
  bool is_over() const { return place_->is_over(); }
  // The server's side sees that it ended.
  bool has_ended() const {
    pollfd server{.fd = ends_[1], .events = POLLIN, .revents = 0};
    return poll(&server, 1, 0) == 1;
  }

 private:
  int ends_[2] = {-1, -1};
  std::unique_ptr<PgSessions::Place> place_;
};

class PgStopWatchTest : public ::testing::Test {
 protected:
  PgSessions& sessions() { return cut_->sessions(); }
  PgStopWatch Watch(const std::string& url) {
    return PgStopWatch({.interval = absl::Milliseconds(100), .grace = absl::Milliseconds(50)}, url,
                       cut_);
  }
  const std::shared_ptr<PgCut> cut_ = std::make_shared<PgCut>();
};

TEST_F(PgStopWatchTest, SessionsOfOneThatStopsAreGivenUpAndThenEnd) {
  RefusingServer server(kFull);
  PgStopWatch watch = Watch(UrlOf(absl::StrCat(server.port())));
  const Session before(sessions());
  watch.Look();
  EXPECT_EQ(server.visitor_count(), 1);
  EXPECT_FALSE(before.is_over()) << "another refusal says nothing of a stop";
  server.set_sqlstate(kStops);
  const auto looked = [&] {
    watch.Look();
    return before.is_over();
  };
  ASSERT_TRUE(Eventually(looked, absl::Seconds(20)));
  EXPECT_FALSE(before.has_ended()) << "its owner has its time";
  server.set_sqlstate(kFull);
  const Session later(sessions());
  const auto ended = [&] {
    watch.Look();
    return before.has_ended();
  };
  ASSERT_TRUE(Eventually(ended, absl::Seconds(20)));
  EXPECT_FALSE(later.is_over());
  EXPECT_FALSE(later.has_ended());
}

TEST_F(PgStopWatchTest, BetweenTwoLooksNobodyIsAsked) {
  const RefusingServer server(kStops);
  PgStopWatch watch({}, UrlOf(absl::StrCat(server.port())), cut_);
  for (int i = 0; i < 100; ++i) watch.Look();
  EXPECT_EQ(server.visitor_count(), 1);
}

// As a standby that lets nobody read.
TEST_F(PgStopWatchTest, OneOfSeveralThatRefusesForEverCostsTheOthersSessionsOnce) {
  const RefusingServer standby(kStops);
  const RefusingServer other(kFull);
  PgStopWatch watch = Watch(UrlOf(absl::StrCat(standby.port(), ",", other.port())));
  const Session first(sessions());
  watch.Look();
  EXPECT_TRUE(first.is_over());
  const Session second(sessions());
  const auto looked = [&] {
    watch.Look();
    return standby.visitor_count() >= 4 && other.visitor_count() >= 4;
  };
  ASSERT_TRUE(Eventually(looked, absl::Seconds(20)));
  EXPECT_FALSE(second.is_over());
  EXPECT_FALSE(second.has_ended());
}

TEST_F(PgStopWatchTest, AnAddressThatCannotBeReadIsNotAsked) {
  PgStopWatch watch = Watch("postgresql://[");
  const Session session(sessions());
  watch.Look();
  EXPECT_FALSE(session.is_over());
}

// One that was begun before, and came about afterwards.
TEST_F(PgStopWatchTest, WhatWasBegunBeforeAGiveUpIsOfItsEra) {
  const std::int64_t era = sessions().era();
  EXPECT_EQ(sessions().GiveUp(), 0);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto place = sessions().Enter(ends[0], era);
  EXPECT_TRUE(place->is_over());
  EXPECT_EQ(sessions().EndOver(), 1);
  place.reset();
  EXPECT_EQ(sessions().EndOver(), 0) << "it is gone";
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace stepwell
