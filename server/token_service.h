// TokenGrpcService: makes, lists and revokes tokens over gRPC, and lends those of one trial to who may ingest it. Thread-safe.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "base/clock.h"
#include "server/access_control.h"
#include "server/token_loop.h"
#include "storage/token_store.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace stepwell {

class TokenGrpcService {
 public:
  // All outlive this. `loop` null: this master asks for no token, and all is refused.
  struct Parts {
    TokenStore& store;
    const AccessControl& access;
    TokenLoop* loop;
    const Clock& clock;
    // Whether this master asks its clients for certificates.
    bool asks_certificates = false;
    // How long a token lives that is fetched, at most.
    absl::Duration fetched_max = absl::Hours(24);
  };
  explicit TokenGrpcService(Parts parts);
  ~TokenGrpcService();

  grpc::Service* service();

 private:
  class Impl;  // defined in token_service.cc, derives from v1::TokenService::Service
  const std::unique_ptr<Impl> impl_;
};

}  // namespace stepwell
