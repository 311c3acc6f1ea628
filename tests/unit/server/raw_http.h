// RawHttp: a connection of a client of the HTTP port that sends exactly what it is told. Waits are bounded.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "absl/strings/match.h"

namespace stepwell {

class RawHttp {
 public:
  explicit RawHttp(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {30, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    EXPECT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  RawHttp(const RawHttp&) = delete;
  ~RawHttp() { close(fd_); }

  // What is sent does not wait for more.
  void SendAtOnce() const {
    const int on = 1;
    EXPECT_EQ(setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
  }
  // False once the server has closed.
  bool Send(const std::string& bytes) const {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Until `end` was read, or the server closed.
  std::string ReadUntil(const std::string& end) {
    std::string got;
    char byte = 0;
    while (!EndsIn(got, end) && recv(fd_, &byte, 1, 0) == 1) got.push_back(byte);
    return got;
  }
  std::string ReadAll() {
    std::string got;
    char block[4096];
    ssize_t count = 0;
    while ((count = recv(fd_, block, sizeof block, 0)) > 0) {
      got.append(block, static_cast<std::size_t>(count));
    }
    closed_ = count == 0 || errno != EAGAIN;
    return got;
  }
  // That many, unless the server closes before.
  std::string ReadBytes(std::size_t bytes) {
    std::string got(bytes, '\0');
    std::size_t have = 0;
    ssize_t count = 0;
    while (have < bytes && (count = recv(fd_, got.data() + have, bytes - have, 0)) > 0) {
      have += static_cast<std::size_t>(count);
    }
    got.resize(have);
    return got;
  }
  // Whether ReadAll came to the end, not to that of its patience.
  bool closed() const { return closed_; }

 private:
  static bool EndsIn(const std::string& text, const std::string& end) {
    return !end.empty() && absl::EndsWith(text, end);
  }
  const int fd_;
  bool closed_ = false;
};

}  // namespace stepwell
