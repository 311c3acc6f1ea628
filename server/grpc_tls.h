// GrpcTls: the certificates of the gRPC port, as gRPC asks for them: at each connection, so that renewed
// ones count from the next one on and no stream is dropped. (gRPC's own watcher of files has no handshake
// at all while a certificate is written and its key is not yet.) Who calls is asked by the services and by
// GrpcDoorkeeper: a processor of gRPC's for that is a way to end the process (CVE-2023-1428: one header
// "grpclb_client_stats", which Debian's gRPC cannot write out for it).
#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "base/tls/tls_reload.h"

namespace stepwell {

// To outlive the server that it is given to.
std::shared_ptr<grpc::ServerCredentials> GrpcTlsCredentials(std::shared_ptr<TlsReload> reload);

}  // namespace stepwell
