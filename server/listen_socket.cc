#include "server/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "server/host_port.h"

namespace stepwell {
namespace {

constexpr int kBacklog = 512;
constexpr char kLocalhost[] = "localhost";

absl::Status Failed(const std::string& host, int port, const std::string& why) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", HostPortText(host, port), ": ", why));
}

bool IsLoopbackV4(const in_addr& address) { return ntohl(address.s_addr) >> 24 == 127; }

bool IsLoopbackAddress(const sockaddr& address) {
  if (address.sa_family == AF_INET) {
    return IsLoopbackV4(reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  }
  if (address.sa_family != AF_INET6) return false;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return IN6_IS_ADDR_LOOPBACK(&v6);
  in_addr mapped{};
  std::memcpy(&mapped, &v6.s6_addr[12], sizeof mapped);
  return IsLoopbackV4(mapped);
}

}  // namespace

absl::StatusOr<ListenSocket> ListenSocket::Open(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found)) {
    return Failed(host, port, gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  // As IsLoopback promises.
  if (host == kLocalhost && !IsLoopbackAddress(*found->ai_addr)) {
    return Failed(host, port, "localhost is no loopback address here; see /etc/hosts");
  }
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return Failed(host, port, std::strerror(errno));
  ListenSocket opened(fd, port, found->ai_family == AF_INET6);
  const int on = 1;
  // Without it a restart would wait for the kernel's TIME_WAIT.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, kBacklog) != 0) {
    const int error = errno;
    return Failed(host, port,
                  error == EADDRINUSE
                      ? "the port is in use by another process; choose another, or 0"
                      : std::strerror(error));
  }
  sockaddr_storage bound{};
  socklen_t bytes = sizeof bound;
  getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &bytes);
  opened.port_ = ntohs(opened.is_v6_ ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                     : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return opened;
}

ListenSocket::~ListenSocket() {
  if (fd_ >= 0) close(fd_);
}

bool IsLoopback(const std::string& host) {
  // By RFC 6761 it is nothing else, also where there is no /etc/hosts.
  if (host == kLocalhost) return true;
  if (host.empty()) return false;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    if (!IsLoopbackAddress(*at->ai_addr)) return false;
  }
  return true;
}

}  // namespace stepwell
