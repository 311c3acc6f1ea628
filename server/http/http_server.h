// HttpServer: one HTTP/1.1 port on Boost.Beast: health, the page, calls. One thread, "http", reads and
// writes all connections; handlers run on it and must be quick, or answer later (HttpExchange). Bounded:
// header and body bytes, bytes of bodies and of answers in all, connections in all and of one address, time for each part
// of a request and for what a client takes.
//
//   HttpServer server(options);
//   server.routes().Add("GET", "/livez", HttpDoor::kOpen, [](const HttpRequest&) { return HttpResponse{}; });
//   STEPWELL_RETURN_IF_ERROR(server.Start());
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/tls/tls_reload.h"
#include "base/worker.h"
#include "server/http/http_routes.h"

namespace stepwell {

class RateLimits;
class TokenGuard;

class HttpServer {
 public:
  struct Options {
    std::string host = "127.0.0.1";
    int port = 0;  // 0 = any free one
    // Names that clients may call it by beside localhost and `host`.
    std::vector<std::string> names = {};
    // Null: plain.
    std::shared_ptr<TlsReload> tls = nullptr;
    // Null: nobody is asked for a token.
    std::shared_ptr<TokenGuard> tokens = nullptr;
    // Null: wrong tokens are not counted.
    std::shared_ptr<RateLimits> rates = nullptr;
    std::uint32_t header_bytes_max = 16 << 10;
    // A message of 4 MiB, and what stands before it where it is in an envelope.
    std::uint64_t body_bytes_max = (4 << 20) + 5;
    // Of answers that wait for their clients, in all.
    std::uint64_t held_bytes_max = 512 << 20;
    // Of requests' bodies that come, or wait to be worked on, in all.
    std::uint64_t held_body_bytes_max = 128 << 20;
    int connections_max = 512;
    int connections_per_address_max = 256;
    // From the connection, or the first byte of a further request, to the end of the header.
    absl::Duration request_timeout = absl::Seconds(10);
    absl::Duration body_timeout = absl::Seconds(30);
    // Between requests.
    absl::Duration idle_timeout = absl::Seconds(60);
    // While the client takes nothing of an answer; for a whole one, or a part of a stream, ten times that.
    absl::Duration stall_timeout = absl::Seconds(30);
  };

  explicit HttpServer(Options options);
  ~HttpServer();

  // To be filled before Start.
  HttpRoutes& routes() { return routes_; }
  // Binds and serves. kUnavailable names the address that cannot be had.
  absl::Status Start();
  // Twice is fine. No exchange is held by others any more.
  void Stop();
  // Valid after Start.
  int port() const { return port_; }

 private:
  class Impl;  // Boost.Beast

  const Options options_;
  HttpRoutes routes_;
  std::unique_ptr<Impl> impl_;
  int port_ = 0;
  Worker worker_;
};

}  // namespace stepwell
