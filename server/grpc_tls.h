// GrpcTls: the certificates of the gRPC port, as gRPC asks for them: at each connection, so that renewed
// ones count from the next one on and no stream is dropped. (gRPC's own watcher of files has no handshake
// at all while a certificate is written and its key is not yet.)
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "base/tls/tls_reload.h"
#include "server/rate_limits.h"
#include "server/token_guard.h"

namespace stepwell {

// To outlive the server that it is given to. With `tokens` no call of any service, known here or not, begins without
// one that lives, or a client's certificate that grants are given to: UNAUTHENTICATED, before its message is read; what it
// grants is asked by the services (grpc_access.h). Null: none is asked for. `rates` slows down who shows wrong tokens, by the
// connection, for where it comes from is not known here, unless `guesses` says that many share it; null: nobody.
enum class GrpcGuesses { kOfConnection, kNotCounted };
std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(
    std::shared_ptr<TlsReload> reload, std::shared_ptr<TokenGuard> tokens,
    std::shared_ptr<RateLimits> rates, GrpcGuesses guesses = GrpcGuesses::kOfConnection);

}  // namespace stepwell
