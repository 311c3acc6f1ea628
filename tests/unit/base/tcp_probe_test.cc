#include "base/tcp_probe.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

class TcpProbeTest : public ::testing::TestWithParam<const char*> {
 protected:
  // A port of loopback, on which somebody listens or, once it is closed, nobody does.
  TcpProbeTest() : is_v6_(GetParam()[0] == '[') {
    fd_ = socket(is_v6_ ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sockaddr_in6 v6{};
    v6.sin6_family = AF_INET6;
    v6.sin6_addr = in6addr_loopback;
    auto* const at = is_v6_ ? reinterpret_cast<sockaddr*>(&v6) : reinterpret_cast<sockaddr*>(&v4);
    socklen_t bytes = is_v6_ ? sizeof v6 : sizeof v4;
    is_there_ = bind(fd_, at, bytes) == 0 && listen(fd_, 1) == 0;
    getsockname(fd_, at, &bytes);
    port_ = ntohs(is_v6_ ? v6.sin6_port : v4.sin_port);
  }
  ~TcpProbeTest() override { CloseListener(); }
  void CloseListener() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  std::string address() const { return absl::StrCat(GetParam(), ":", port_); }

  const bool is_v6_;
  bool is_there_ = false;
  int fd_ = -1;
  int port_ = 0;
};

TEST_P(TcpProbeTest, SaysWhetherSomebodyListens) {
  if (!is_there_) GTEST_SKIP() << "no such loopback here";
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
  {
    const TcpProbe probe(address(), deadline);
    ASSERT_TRUE(probe.connected()) << probe.trouble();
    EXPECT_EQ(probe.trouble(), "");
    EXPECT_EQ(probe.host(), is_v6_ ? "::1" : GetParam());
    EXPECT_TRUE(TcpProbe::WaitFor(probe.fd(), POLLOUT, deadline));
    EXPECT_FALSE(TcpProbe::WaitFor(probe.fd(), POLLIN, SteadyTime::Now())) << "it says nothing";
  }
  CloseListener();
  const TcpProbe probe(address(), deadline);
  EXPECT_FALSE(probe.connected());
  EXPECT_EQ(probe.trouble(), "the connection was refused: nobody listens there");
}

INSTANTIATE_TEST_SUITE_P(Loopback, TcpProbeTest,
                         ::testing::Values("127.0.0.1", "localhost", "[::1]"));

// Neither is asked of a network.
TEST(TcpProbeNameTest, WhatIsNoNameIsUnknown) {
  const SteadyTime deadline = SteadyTime::Now() + absl::Seconds(20);
  EXPECT_EQ(TcpProbe("no..name:7817", deadline).trouble(), "the name 'no..name' is unknown here");
  EXPECT_FALSE(TcpProbe("127.0.0.1:no-port", deadline).connected());
}

}  // namespace
}  // namespace stepwell
