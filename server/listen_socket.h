// ListenSocket: a TCP socket that listens, opened by us, so that errors name the address and no
// other process shares the port unseen. Move-only.
#pragma once

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace stepwell {

class ListenSocket {
 public:
  // `host` is a numeric address or a name. kUnavailable: in use, or not ours.
  static absl::StatusOr<ListenSocket> Open(const std::string& host, int port);
  ListenSocket(ListenSocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), port_(other.port_), is_v6_(other.is_v6_) {}
  ListenSocket& operator=(ListenSocket&&) = delete;
  ~ListenSocket();

  int fd() const { return fd_; }
  // The real one where 0 was asked for.
  int port() const { return port_; }
  bool is_v6() const { return is_v6_; }
  // The caller closes it.
  int Release() { return std::exchange(fd_, -1); }

 private:
  ListenSocket(int fd, int port, bool is_v6) : fd_(fd), port_(port), is_v6_(is_v6) {}
  int fd_;
  int port_;
  bool is_v6_;
};

// True for 127.0.0.0/8, ::1, localhost, and a name all of whose addresses are such. May ask DNS.
bool IsLoopback(const std::string& host);

}  // namespace stepwell
