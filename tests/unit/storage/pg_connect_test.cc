// Servers that are there and say nothing, and ones that do not even accept: no PostgreSQL is needed for
// those.
#include "storage/pg_connect.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/worker.h"

namespace stepwell {
namespace {

using ::testing::HasSubstr;

// Listens, and answers nobody.
class SilentServer {
 public:
  enum class Kind { kSilent, kAcceptsNobody };
  explicit SilentServer(Kind kind) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof(address);
    listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(listening_, name, size), 0);
    EXPECT_EQ(listen(listening_, kind == Kind::kSilent ? 16 : 0), 0);
    EXPECT_EQ(getsockname(listening_, name, &size), 0);
    port_ = ntohs(address.sin_port);
    if (kind == Kind::kSilent) return;
    // The queue is full with the first or second: what follows is as if nobody were there.
    for (int& each : waiting_) {
      each = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
      (void)connect(each, name, size);
    }
  }
  ~SilentServer() {
    for (const int each : waiting_) {
      if (each >= 0) close(each);
    }
    close(listening_);
  }
  std::string Conninfo() const { return absl::StrCat("host=127.0.0.1 user=u port=", port_); }
  int port() const { return port_; }
  bool has_visitor() const {
    pollfd waited{.fd = listening_, .events = POLLIN, .revents = 0};
    return poll(&waited, 1, 0) == 1;
  }

 private:
  int listening_ = -1;
  int port_ = 0;
  int waiting_[4] = {-1, -1, -1, -1};
};

TEST(PgConnectTest, ACutEndsItAtItsMomentHoweverManyServersSayNothing) {
  for (const auto kind : {SilentServer::Kind::kSilent, SilentServer::Kind::kAcceptsNobody}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const SilentServer one(kind);
    const SilentServer two(kind);
    PgCut cut;
    const absl::Time begin = absl::Now();
    Worker other("cut", [&] { cut.CutAfter(absl::Milliseconds(100)); });
    const auto opened = PgConnect({one.Conninfo(), two.Conninfo()}, {.cut = &cut});
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr(kCutMessage));
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(90));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
    EXPECT_EQ(PgConnect({one.Conninfo()}, {.cut = &cut}).status().code(),
              absl::StatusCode::kUnavailable);
  }
}

TEST(PgConnectTest, EachServerThatSaysNothingHasItsTime) {
  for (const auto kind : {SilentServer::Kind::kSilent, SilentServer::Kind::kAcceptsNobody}) {
    SCOPED_TRACE(static_cast<int>(kind));
    const SilentServer one(kind);
    const SilentServer two(kind);
    const absl::Time begin = absl::Now();
    const auto opened =
        PgConnect({one.Conninfo(), two.Conninfo()}, {.patience = absl::Milliseconds(100)});
    EXPECT_EQ(opened.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(opened.status().message()), HasSubstr("no answer in time"));
    EXPECT_GE(absl::Now() - begin, absl::Milliseconds(200));
    EXPECT_LT(absl::Now() - begin, absl::Seconds(5));
  }
}

// Of one target the next address has its turn where one does not accept, as libpq's own wait does.
TEST(PgConnectTest, OneAddressThatAcceptsNobodyIsFollowedByTheNext) {
  const SilentServer one(SilentServer::Kind::kAcceptsNobody);
  const SilentServer two(SilentServer::Kind::kSilent);
  const auto opened = PgConnect(
      {absl::StrCat("hostaddr=127.0.0.1,127.0.0.1 user=u port=", one.port(), ",", two.port())},
      {.patience = absl::Milliseconds(100)});
  EXPECT_THAT(std::string(opened.status().message()), HasSubstr("no answer in time"));
  EXPECT_TRUE(two.has_visitor());
}

}  // namespace
}  // namespace stepwell
