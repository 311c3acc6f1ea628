#include "server/port_options.h"

#include <utility>

namespace stepwell {

MemoryAsked AskedMemory(const ServeOptions& options) {
  return {.memory_bytes = options.memory_bytes,
          .queue_bytes = options.queue_bytes,
          .fold_bytes = options.fold_bytes,
          .latest_bytes = options.latest_bytes,
          .follow_bytes = options.follow_bytes,
          .streams_max = options.streams_max};
}

GrpcServer::Options GrpcOptions(const ServeOptions& options, const MemoryShares& shares,
                                const HostPort& listen, std::shared_ptr<TlsReload> tls,
                                std::shared_ptr<RateLimits> rates) {
  GrpcServer::Options grpc;
  grpc.host = listen.host;
  grpc.port = listen.port;
  grpc.connections_per_address_max = static_cast<int>(options.connections_per_address_max);
  grpc.window_bytes = shares.window_bytes;
  grpc.quota_bytes = shares.grpc_bytes();
  grpc.tls = std::move(tls);
  grpc.rates = std::move(rates);
  return grpc;
}

HttpServer::Options HttpOptions(const ServeOptions& options, const MemoryShares& shares,
                                const HostPort& listen, std::vector<std::string> names,
                                std::shared_ptr<TlsReload> tls, std::shared_ptr<TokenGuard> tokens,
                                std::shared_ptr<RateLimits> rates) {
  HttpServer::Options http;
  http.host = listen.host;
  http.port = listen.port;
  http.names = std::move(names);
  http.tls = std::move(tls);
  http.tokens = std::move(tokens);
  http.rates = std::move(rates);
  http.held_bytes_max = static_cast<std::uint64_t>(shares.of(MemoryShares::kAnswers));
  http.held_body_bytes_max = static_cast<std::uint64_t>(shares.of(MemoryShares::kBodies));
  http.connections_max = static_cast<int>(options.http_connections_max);
  http.connections_per_address_max = static_cast<int>(options.connections_per_address_max);
  return http;
}

}  // namespace stepwell
