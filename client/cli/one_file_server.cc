#include "client/cli/one_file_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/uuid.h"

namespace stepwell::cli {
namespace {

constexpr std::size_t kRequestBytesMax = 16 << 10;
constexpr std::size_t kPieceBytes = 1 << 18;
// Of one connection, for its request and between two pieces.
constexpr absl::Duration kPatience = absl::Seconds(30);

// Waits until `events` are there; false at the deadline, and where the other side has gone.
bool Wait(int socket, short events, SteadyTime deadline) {
  while (!deadline.HasPassed()) {
    pollfd waited{socket, events, 0};
    const auto left = std::min(deadline.Left(), absl::Seconds(1));
    const int ready = poll(&waited, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return (waited.revents & events) != 0;
    if (ready < 0 && errno != EINTR) return false;
  }
  return false;
}

bool SendAll(int socket, std::string_view bytes, SteadyTime deadline) {
  while (!bytes.empty()) {
    if (!Wait(socket, POLLOUT, std::min(deadline, SteadyTime::Now() + kPatience))) return false;
    const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return false;
    bytes.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
  return true;
}

// Up to its empty line; empty where none came.
std::string ReadRequest(int socket, SteadyTime deadline) {
  std::string request;
  while (request.size() < kRequestBytesMax && Wait(socket, POLLIN, deadline)) {
    char piece[2048];
    const ssize_t count = recv(socket, piece, sizeof piece, MSG_DONTWAIT);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return "";
    request.append(piece, static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (request.find("\r\n\r\n") != std::string::npos) return request;
  }
  return "";
}

std::string HeaderOf(std::string_view request, std::string_view name) {
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(request.data(), request.size()), "\r\n")) {
    const std::size_t colon = line.find(':');
    if (colon == absl::string_view::npos) continue;
    if (absl::AsciiStrToLower(line.substr(0, colon)) != absl::string_view(name.data(), name.size()))
      continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }
  return "";
}

}  // namespace

absl::StatusOr<std::unique_ptr<OneFileServer>> OneFileServer::Open(Options options) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return absl::ErrnoToStatus(errno, "socket");
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(options.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (bind(socket, any, sizeof address) != 0 || listen(socket, 8) != 0 ||
      getsockname(socket, any, &bytes) != 0) {
    const std::string why = std::strerror(errno);
    close(socket);
    return absl::UnavailableError(absl::StrCat("127.0.0.1:", options.port, ": ", why));
  }
  return std::unique_ptr<OneFileServer>(
      new OneFileServer(std::move(options), socket, ntohs(address.sin_port)));
}

OneFileServer::OneFileServer(Options options, int socket, int port)
    : options_(std::move(options)),
      socket_(socket),
      port_(port),
      host_(absl::StrCat("127.0.0.1:", port)),
      target_(absl::StrCat("/", Uuid::Random().ToText(), "/", options_.name)),
      url_(absl::StrCat("http://", host_, target_)) {}

OneFileServer::~OneFileServer() { close(socket_); }

absl::Status OneFileServer::ServeOnce(SteadyTime deadline) {
  while (Wait(socket_, POLLIN, deadline)) {
    const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    const bool is_done = Answer(connection, deadline);
    close(connection);
    if (is_done) return absl::OkStatus();
  }
  return absl::DeadlineExceededError("nobody fetched it");
}

std::string OneFileServer::HeadOf(std::string_view request, bool& sends_file) const {
  sends_file = false;
  const std::string cors =
      absl::StrCat("Access-Control-Allow-Origin: ", options_.origin,
                   "\r\nAccess-Control-Allow-Private-Network: true\r\nVary: Origin\r\n"
                   "Cache-Control: no-store\r\nConnection: close\r\n");
  const auto answer = [&](const char* status, std::int64_t byte_count) {
    return absl::StrCat("HTTP/1.1 ", status, "\r\n", cors, "Content-Length: ", byte_count,
                        "\r\n\r\n");
  };
  const std::vector<std::string> words =
      absl::StrSplit(std::string(request.substr(0, request.find("\r\n"))), ' ', absl::SkipEmpty());
  // A name that leads here from elsewhere is another page's trick.
  if (words.size() != 3 || words[1] != target_ || HeaderOf(request, "host") != host_) {
    return answer("404 Not Found", 0);
  }
  if (words[0] == "OPTIONS") return answer("204 No Content", 0);
  if (words[0] != "GET" && words[0] != "HEAD") return answer("405 Method Not Allowed", 0);
  struct stat found {};
  if (fstat(options_.file, &found) != 0) return answer("404 Not Found", 0);
  sends_file = words[0] == "GET";
  return answer("200 OK", found.st_size);
}

bool OneFileServer::Answer(int connection, SteadyTime deadline) {
  const std::string request =
      ReadRequest(connection, std::min(deadline, SteadyTime::Now() + kPatience));
  if (request.empty()) return false;
  bool sends_file = false;
  const std::string head = HeadOf(request, sends_file);
  return SendAll(connection, head, deadline) && sends_file && SendFile(connection, deadline);
}

bool OneFileServer::SendFile(int connection, SteadyTime deadline) const {
  std::vector<char> piece(kPieceBytes);
  bool is_sent = true;
  ssize_t count = 0;
  for (off_t at = 0; is_sent; at += count) {
    count = pread(options_.file, piece.data(), piece.size(), at);
    if (count <= 0) break;
    is_sent = SendAll(connection, {piece.data(), static_cast<std::size_t>(count)}, deadline);
  }
  is_sent = is_sent && count == 0;
  // Its last bytes are read before the connection ends.
  shutdown(connection, SHUT_WR);
  char rest = 0;
  while (is_sent && Wait(connection, POLLIN, std::min(deadline, SteadyTime::Now() + kPatience)) &&
         recv(connection, &rest, 1, MSG_DONTWAIT) > 0) {
  }
  return is_sent;
}

}  // namespace stepwell::cli
