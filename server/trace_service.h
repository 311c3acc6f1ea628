// TraceGrpcService: uploads, lists, reads, merges and captures of traces over gRPC. Each call has a thread of its own
// while it runs, and borrows a connection of the store for a part at a time: a client that is slow holds
// neither. Few run at once; more are refused rather than queued. Thread-safe.
#pragma once

#include <functional>
#include <memory>

#include "server/access_control.h"
#include "server/master_state.h"
#include "server/query_reads.h"
#include "server/trace_capturing.h"
#include "storage/trace_store.h"

namespace grpc {
class Service;
}  // namespace grpc

namespace stepwell {

class TraceGrpcService {
 public:
  struct Options {
    // Uploads at once: each holds a part in memory, and some 2 MiB of gRPC's.
    int uploads_max = 16;
    // Reads of traces at once.
    int reads_max = 8;
    // Merges and summaries at once: each has a processor for itself.
    int merges_max = 4;
    // Samples wait for their commit: a quarter of the reads and merges, see ReadAdmission.
    std::function<bool()> writers_wait = {};
    // A client that sends or takes nothing for so long gives its place to others.
    absl::Duration stall_max = absl::Minutes(2);
    // Outlives this; null = nobody is asked for a token.
    const AccessControl* access = nullptr;
  };

  // All outlive this. `reads` has what machines measured while traces ran.
  TraceGrpcService(TraceStore& store, MasterState& state, const QueryReads& reads,
                   TraceCapturing& capturing, Options options);
  TraceGrpcService(TraceStore& store, MasterState& state, const QueryReads& reads,
                   TraceCapturing& capturing)
      : TraceGrpcService(store, state, reads, capturing, Options()) {}
  ~TraceGrpcService();

  grpc::Service* service();

 private:
  class Impl;  // defined in trace_service.cc, derives from v1::TraceService::Service
  const std::unique_ptr<Impl> impl_;
};

}  // namespace stepwell
