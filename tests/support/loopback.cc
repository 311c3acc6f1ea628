#include "tests/support/loopback.h"

#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "absl/cleanup/cleanup.h"
#include "base/check.h"

namespace stepwell::testing {
namespace {

constexpr int kBacklog = 16;

}  // namespace

int FreePort() {
  static int next = 20000 + static_cast<int>(std::random_device()() % 10000);
  while (true) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const absl::Cleanup closer = [fd] { close(fd); };
    const sockaddr_in address = Loopback(++next);
    if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return next;
  }
}

SilentListener::SilentListener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  STEPWELL_CHECK(bind(fd_, reinterpret_cast<const sockaddr*>(&address), size) == 0);
  STEPWELL_CHECK(listen(fd_, kBacklog) == 0);
  STEPWELL_CHECK(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
  port_ = ntohs(address.sin_port);
}

SilentListener::~SilentListener() { close(fd_); }

}  // namespace stepwell::testing
