// What the kernel says of a real connection.
#include "server/connection_socket.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "server/peer_address.h"

namespace stepwell {
namespace {

class ConnectionSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    ASSERT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at), size), 0);
    ASSERT_EQ(listen(listener_, 1), 0);
    ASSERT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    client_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(connect(client_, reinterpret_cast<sockaddr*>(&at), size), 0);
    server_ = accept(listener_, reinterpret_cast<sockaddr*>(&peer_), &size);
    ASSERT_GE(server_, 0);
  }
  // Not before: tests say whose numbers come free.
  void TearDown() override { close(listener_); }

  sockaddr_in peer_{};
  int listener_ = -1;
  int client_ = -1;
  int server_ = -1;
};

// Its owner, who has the number still, may hear of it later.
TEST_F(ConnectionSocketTest, WhatTheOtherEndResetIsOver) {
  KernelSockets kernel;
  const ConnectionSocket socket = ConnectionSocket::Of(server_);
  EXPECT_FALSE(kernel.StateOf(socket)->is_over);
  ASSERT_EQ(send(client_, "bytes", 5, 0), 5);
  const linger at_once{1, 0};
  ASSERT_EQ(setsockopt(client_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
  close(client_);
  pollfd wait{server_, POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, 10'000), 1);
  EXPECT_FALSE(socket.IsGone());
  const auto state = kernel.StateOf(socket);
  ASSERT_TRUE(state.has_value());
  EXPECT_TRUE(state->is_over);
  EXPECT_EQ(state->bytes_received, 5) << "what came before counts";
  close(server_);
  EXPECT_EQ(kernel.StateOf(socket), std::nullopt);
}

// What has come is counted though nobody reads it.
TEST_F(ConnectionSocketTest, TheKernelCountsWhatCame) {
  const int client = client_;
  const int server = server_;
  EXPECT_EQ(EndOfSocket(reinterpret_cast<const sockaddr&>(peer_)),
            "127.0.0.1:" + std::to_string(ntohs(peer_.sin_port)));
  KernelSockets kernel;
  const ConnectionSocket socket = ConnectionSocket::Of(server);
  EXPECT_EQ(kernel.StateOf(socket)->bytes_received, 0);
  const std::string text(10'000, 'x');
  ASSERT_EQ(send(client, text.data(), text.size(), 0), 10'000);
  pollfd wait{server, POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, 10'000), 1);
  EXPECT_EQ(kernel.StateOf(socket)->bytes_received, 10'000);

  kernel.Shut(socket);
  std::string answer(1, ' ');
  EXPECT_EQ(recv(client, answer.data(), 1, 0), -1) << "the other end hears of it";
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_TRUE(kernel.StateOf(socket)->is_over);
  EXPECT_EQ(recv(server, answer.data(), 1, MSG_DONTWAIT), -1) << "and what came is dropped";
  close(server);
  EXPECT_TRUE(socket.IsGone());
  EXPECT_EQ(kernel.StateOf(socket), std::nullopt);
  // Whose number it was belongs to another now, which is not touched.
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  ASSERT_EQ(dup2(pair[0], server), server);
  kernel.Shut(socket);
  EXPECT_EQ(send(pair[0], "x", 1, MSG_NOSIGNAL), 1);
  for (const int fd : {pair[0], pair[1], server}) close(fd);
  close(client);
}

}  // namespace
}  // namespace stepwell
