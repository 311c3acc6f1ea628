#include "server/connection_socket.h"

// The kernel's own: glibc's tcp_info ends before the bytes.
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstddef>

namespace stepwell {
namespace {

// TCP_CLOSE of <netinet/tcp.h>, which does not go with the kernel's.
constexpr std::uint8_t kTcpClose = 7;

std::uint64_t InodeOf(int fd) {
  struct stat about {};
  return fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode) ? about.st_ino : 0;
}

}  // namespace

ConnectionSocket ConnectionSocket::Of(int fd) { return {fd, InodeOf(fd)}; }

bool ConnectionSocket::IsGone() const { return InodeOf(fd) != inode; }

std::optional<ConnectionSockets::State> KernelSockets::StateOf(const ConnectionSocket& socket) {
  if (socket.IsGone()) return std::nullopt;
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (getsockopt(socket.fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) bytes = 0;
  if (bytes == 0 && socket.IsGone()) return std::nullopt;
  State state;
  state.is_over = bytes != 0 && info.tcpi_state == kTcpClose;
  constexpr auto kWanted =
      offsetof(tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
  // A kernel of before 4.1 tells less; such connections end by their time alone.
  if (bytes >= kWanted) state.bytes_received = static_cast<std::int64_t>(info.tcpi_bytes_received);
  return state;
}

void KernelSockets::Shut(const ConnectionSocket& socket) {
  if (socket.IsGone()) return;
  // shutdown() leaves what has come to be read, which may be a thousand calls.
  sockaddr none{};
  none.sa_family = AF_UNSPEC;
  if (connect(socket.fd, &none, sizeof none) != 0) shutdown(socket.fd, SHUT_RDWR);
}

}  // namespace stepwell
