#include "tests/faults/useless_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace stepwell::faults {
namespace {

// Some more than the smallest backlog takes.
constexpr int kWaiting = 8;
constexpr int kLookMs = 50;

}  // namespace

UselessServer::UselessServer(Kind kind) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(place);
  auto* address = reinterpret_cast<sockaddr*>(&place);
  STEPWELL_CHECK(bind(listener_, address, size) == 0);
  STEPWELL_CHECK(listen(listener_, kind == Kind::kSwallows ? 0 : kWaiting) == 0);
  STEPWELL_CHECK(getsockname(listener_, address, &size) == 0);
  port_ = ntohs(place.sin_port);
  if (kind == Kind::kSwallows) {
    FillBacklog();
  } else {
    thread_ = std::thread([this] { TalkNonsense(); });
  }
}

UselessServer::~UselessServer() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
  for (const int connection : waiting_) close(connection);
  close(listener_);
}

std::string UselessServer::address() const { return absl::StrCat("127.0.0.1:", port_); }

// A kernel whose queue of a listener is full drops who comes next without a word.
void UselessServer::FillBacklog() {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(port_));
  for (int i = 0; i < kWaiting; ++i) {
    waiting_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    (void)connect(waiting_.back(), reinterpret_cast<sockaddr*>(&place), sizeof(place));
  }
}

void UselessServer::TalkNonsense() {
  std::minstd_rand random;
  while (!stopping_) {
    pollfd asked{.fd = listener_, .events = POLLIN, .revents = 0};
    if (poll(&asked, 1, kLookMs) != 1) continue;
    const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    ++connection_count_;
    std::string nonsense(4096, '\0');
    for (char& byte : nonsense) byte = static_cast<char>(random());
    (void)send(connection, nonsense.data(), nonsense.size(), MSG_NOSIGNAL);
    // Heard for a moment, then dropped.
    pollfd heard{.fd = connection, .events = POLLIN, .revents = 0};
    while (poll(&heard, 1, kLookMs) == 1 &&
           recv(connection, nonsense.data(), nonsense.size(), MSG_DONTWAIT) > 0) {
    }
    close(connection);
  }
}

}  // namespace stepwell::faults
