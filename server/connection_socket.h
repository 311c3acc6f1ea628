// ConnectionSocket: the socket of a connection that somebody else owns, and what the kernel knows of it.
//
//   const std::optional<ConnectionSocket> socket = ConnectionSocket::Of(fd);   // as it is accepted
#pragma once

#include <cstdint>
#include <optional>

namespace stepwell {

// Its owner may close it at any time: the inode tells whether the number still stands for the same socket.
struct ConnectionSocket {
  int fd = -1;
  std::uint64_t inode = 0;

  static ConnectionSocket Of(int fd);
  bool IsGone() const;
  friend bool operator==(const ConnectionSocket&, const ConnectionSocket&) = default;
};

// The kernel, or what a test has for it. Thread-safe.
class ConnectionSockets {
 public:
  virtual ~ConnectionSockets() = default;
  struct State {
    // Of the other end, that this one has acknowledged, since the connection began, read or not.
    std::int64_t bytes_received = 0;
    // Nobody can send there any more.
    bool is_over = false;
    friend bool operator==(const State&, const State&) = default;
  };
  // Nothing where its owner has closed it.
  virtual std::optional<State> StateOf(const ConnectionSocket& socket) = 0;
  // Both ways, at once: what has come and was not read is dropped, the other end hears of a reset. Its owner finds it ended. Between the look at the number and the call its owner may close it and somebody open
  // another with the same number, which then ends instead: whatever has a connection in this process opens it anew, and
  // whatever commits takes a lost answer for doubt.
  virtual void Shut(const ConnectionSocket& socket) = 0;
};

class KernelSockets final : public ConnectionSockets {
 public:
  std::optional<State> StateOf(const ConnectionSocket& socket) override;
  void Shut(const ConnectionSocket& socket) override;
};

}  // namespace stepwell
