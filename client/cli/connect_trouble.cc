#include "client/cli/connect_trouble.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <string_view>

#include "absl/strings/match.h"
#include "base/steady_time.h"
#include "base/tcp_probe.h"

namespace stepwell::cli {
namespace {

// What a server of HTTP/1.1 answers; gRPC's says something of HTTP/2, or nothing.
bool SpeaksHttp1(const TcpProbe& probe, SteadyTime deadline) {
  constexpr std::string_view kRequest = "GET / HTTP/1.0\r\n\r\n";
  if (send(probe.fd(), kRequest.data(), kRequest.size(), MSG_NOSIGNAL) < 0) return false;
  if (!TcpProbe::WaitFor(probe.fd(), POLLIN, deadline)) return false;
  std::array<char, 8> word{};
  const auto count = recv(probe.fd(), word.data(), word.size(), 0);
  return count > 0 && absl::StartsWith({word.data(), static_cast<std::size_t>(count)}, "HTTP/1.");
}

}  // namespace

std::string ConnectTrouble(const std::string& address, bool has_tls, absl::Duration patience) {
  const SteadyTime deadline = SteadyTime::Now() + patience;
  const TcpProbe probe(address, deadline);
  if (!probe.connected()) return probe.trouble();
  if (!has_tls && SpeaksHttp1(probe, deadline)) {
    return "something listens there that speaks HTTP and no gRPC: is it the master's other port?";
  }
  return "something listens there, but no connection of gRPC came about";
}

}  // namespace stepwell::cli
