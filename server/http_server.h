// HttpServer: one HTTP/1.1 port on Boost.Beast: health for orchestrators now, more routes later. One
// thread, "http", serves all connections; handlers run on it and must be quick. Bounded: header
// and body bytes, connections, time per request.
//
//   HttpServer server(options);
//   server.Route("GET", "/livez", [](const HttpRequest&) { return HttpResponse{}; });
//   STEPWELL_RETURN_IF_ERROR(server.Start());
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/worker.h"

namespace stepwell {

struct HttpRequest {
  std::string method;
  // Without the query.
  std::string path;
  std::string query;
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;
  struct Options {
    std::string host = "127.0.0.1";
    int port = 0;  // 0 = any free one
    std::uint32_t header_bytes_max = 16 << 10;
    std::uint64_t body_bytes_max = 4 << 20;
    int connections_max = 256;
    absl::Duration request_timeout = absl::Seconds(10);
    absl::Duration idle_timeout = absl::Seconds(60);
  };

  explicit HttpServer(Options options);
  ~HttpServer();

  // Before Start.
  void Route(const std::string& method, const std::string& path, Handler handler);
  // Binds and serves. kUnavailable names the address that cannot be had.
  absl::Status Start();
  // Twice is fine.
  void Stop();
  // Valid after Start.
  int port() const { return port_; }

 private:
  class Impl;  // Boost.Beast

  const Options options_;
  // path → method → handler
  std::map<std::string, std::map<std::string, Handler>> routes_;
  std::unique_ptr<Impl> impl_;
  int port_ = 0;
  Worker worker_;
};

}  // namespace stepwell
