#include "base/tcp_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"

namespace stepwell {
namespace {

std::string NameTrouble(const std::string& host, int error) {
  if (error == EAI_NONAME || error == EAI_NODATA) {
    return absl::StrCat("the name '", host, "' is unknown here");
  }
  const char* why = error == EAI_SYSTEM ? std::strerror(errno) : gai_strerror(error);
  return absl::StrCat("the name '", host, "' was not looked up: ", why);
}

std::string ConnectErrorText(int error) {
  if (error == ECONNREFUSED) return "the connection was refused: nobody listens there";
  if (error == ETIMEDOUT || error == EINPROGRESS) {
    return "nothing came back: is a firewall between?";
  }
  return std::strerror(error);
}

// The socket, or -1 with errno.
int ConnectTo(const addrinfo& at, SteadyTime deadline) {
  const int fd = socket(at.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  int error = connect(fd, at.ai_addr, at.ai_addrlen) == 0 ? 0 : errno;
  if (error == EINPROGRESS && TcpProbe::WaitFor(fd, POLLOUT, deadline)) {
    socklen_t bytes = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes);
  }
  if (error == 0) return fd;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

TcpProbe::TcpProbe(const std::string& address, SteadyTime deadline) {
  const std::size_t colon = address.rfind(':');
  host_ = address.substr(0, colon);
  if (host_.size() > 2 && host_.front() == '[' && host_.back() == ']') {
    host_ = host_.substr(1, host_.size() - 2);
  }
  const std::string port = colon == std::string::npos ? "" : address.substr(colon + 1);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host_.c_str(), port.c_str(), &hints, &found); error != 0) {
    trouble_ = NameTrouble(host_, error);
    return;
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owned(found, &freeaddrinfo);
  for (const addrinfo* at = found; at != nullptr && fd_ < 0; at = at->ai_next) {
    fd_ = ConnectTo(*at, deadline);
    trouble_ = fd_ < 0 ? ConnectErrorText(errno) : "";
  }
}

TcpProbe::~TcpProbe() {
  if (fd_ >= 0) close(fd_);
}

bool TcpProbe::WaitFor(int fd, short events, SteadyTime deadline) {
  for (;;) {
    pollfd wait{fd, events, 0};
    const auto left_ms = absl::ToInt64Milliseconds(deadline.Left());
    const int ready =
        poll(&wait, 1, static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60'000)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace stepwell
