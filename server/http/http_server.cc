#include "server/http/http_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "server/http/http_connection.h"
#include "server/listen_socket.h"
#include "server/peer_address.h"

namespace stepwell {
namespace {

namespace asio = boost::asio;
using tcp = boost::asio::ip::tcp;

// What a client that finds no place may read, where there is room for it at once.
std::string NoPlace() {
  const std::string body =
      "{\"code\":\"unavailable\",\"message\":\"too many connections are open\"}\n";
  return absl::StrCat(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
      "Retry-After: 1\r\nContent-Length: ",
      body.size(), "\r\n\r\n", body);
}

// A client whose machine is gone says nothing: the kernel asks it, and does not wait for ever for what
// it does not acknowledge. No child inherits a connection.
void SetUp(int fd) {
  const int on = 1;
  const int unacknowledged_ms = 60'000;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacknowledged_ms, sizeof unacknowledged_ms);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const Options& options, const HttpRoutes& routes)
      : port_{context_, options, routes, HttpGuard({.host = options.host, .names = options.names})},
        acceptor_(context_),
        accept_timer_(context_) {}

  // Takes the descriptor over.
  void Listen(int fd, bool is_v6) {
    acceptor_.assign(is_v6 ? tcp::v6() : tcp::v4(), fd);
    Accept();
  }
  void Run() { context_.run(); }
  void Stop() { context_.stop(); }

 private:
  void Accept();
  void Admit(tcp::socket socket);

  // Before the context, whose end lets the last connections go.
  HttpPort port_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_;
  asio::steady_timer accept_timer_;
};

void HttpServer::Impl::Accept() {
  acceptor_.async_accept([this](boost::system::error_code error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      // Out of descriptors, mostly: the listener stays, and looks again soon.
      accept_timer_.expires_after(std::chrono::milliseconds(50));
      accept_timer_.async_wait([this](boost::system::error_code aborted) {
        if (!aborted) Accept();
      });
      return;
    }
    Admit(std::move(socket));
    Accept();
  });
}

void HttpServer::Impl::Admit(tcp::socket socket) {
  boost::system::error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;  // gone again
  const std::string address = AddressOfSocket(*peer.data());
  if (!port_.places.Take(address)) {
    // Within TLS it would be noise.
    if (port_.options.tls != nullptr) return;
    static const std::string* no_place = new std::string(NoPlace());
    send(socket.native_handle(), no_place->data(), no_place->size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;
  }
  SetUp(socket.native_handle());
  StartHttpConnection(port_, std::move(socket), address, peer.address().is_loopback());
}

HttpServer::HttpServer(Options options) : options_(std::move(options)) {}

HttpServer::~HttpServer() { Stop(); }

absl::Status HttpServer::Start() {
  STEPWELL_ASSIGN_OR_RETURN(ListenSocket socket, ListenSocket::Open(options_.host, options_.port));
  port_ = socket.port();
  impl_ = std::make_unique<Impl>(options_, routes_);
  try {
    const bool is_v6 = socket.is_v6();
    impl_->Listen(socket.Release(), is_v6);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrCat("http: ", error.what()));
  }
  worker_ = Worker("http", [this] { impl_->Run(); });
  return absl::OkStatus();
}

void HttpServer::Stop() {
  if (impl_ != nullptr) impl_->Stop();
  worker_.Join();
}

}  // namespace stepwell
