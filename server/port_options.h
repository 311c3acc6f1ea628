// What both ports of a master are told of its settings.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/grpc_server.h"
#include "server/host_port.h"
#include "server/http/http_server.h"
#include "server/memory_shares.h"
#include "server/settings.h"

namespace stepwell {

// What the settings name of memory.
MemoryAsked AskedMemory(const ServeOptions& options);

GrpcServer::Options GrpcOptions(const ServeOptions& options, const MemoryShares& shares,
                                const HostPort& listen, std::shared_ptr<TlsReload> tls,
                                std::shared_ptr<RateLimits> rates);

HttpServer::Options HttpOptions(const ServeOptions& options, const MemoryShares& shares,
                                const HostPort& listen, std::vector<std::string> names,
                                std::shared_ptr<TlsReload> tls, std::shared_ptr<TokenGuard> tokens,
                                std::shared_ptr<RateLimits> rates);

}  // namespace stepwell
