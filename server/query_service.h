// QueryGrpcService: QueryReads over gRPC. Each call has a thread of its own while it runs; a stream
// is written as fast as the client takes it. At most so many reads run at once: more are refused
// rather than queued without end. Those that follow, which may last for days, are counted apart.
// Thread-safe.
//
//   QueryGrpcService queries({.store = reader, .heads = heads, .clock = clock, .liveness = registry});
//   builder.RegisterService(queries.service());
#pragma once

#include <functional>
#include <memory>

#include "server/access_control.h"
#include "server/answer_patience.h"
#include "server/trial_view.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace stepwell {

class QueryGrpcService {
 public:
  struct Options {
    // Reads at once; a further one waits a moment, then RESOURCE_EXHAUSTED.
    int reads_max = 16;
    // No read asks the database for more after that, whatever the client's deadline; what it asks then ends soon
    // (ReadStore::OpenSnapshot).
    absl::Duration read_time_max = kReadTimeMax;
    // Samples wait for their commit: a quarter of the reads, see ReadAdmission.
    std::function<bool()> writers_wait = {};
    // Calls that follow at once, beside the reads; a further one gets RESOURCE_EXHAUSTED.
    int follows_max = 64;
    // Outlives this; null = nobody is asked for a token.
    const AccessControl* access = nullptr;
  };

  QueryGrpcService(QuerySources sources, Options options);
  explicit QueryGrpcService(QuerySources sources) : QueryGrpcService(sources, Options()) {}
  ~QueryGrpcService();

  grpc::Service* service();

 private:
  class Impl;  // defined in query_service.cc, derives from v1::QueryService::Service
  const std::unique_ptr<Impl> impl_;
};

}  // namespace stepwell
