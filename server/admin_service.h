// AdminService: the gRPC skin of what operators ask.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "server/fold_loop.h"
#include "server/heads.h"
#include "server/ingest_stats.h"
#include "server/master_state.h"
#include "server/wire.h"
#include "server/writer_director.h"
#include "server/writer_registry.h"
#include "stepwell/v1/admin.grpc.pb.h"
#include "storage/ingest_store.h"
#include "storage/read_store.h"

namespace stepwell {

class AdminService final : public pb::AdminService::Service {
 public:
  // All outlive this.
  struct Parts {
    std::string master_id;
    std::string version;
    FoldLoop& fold_loop;
    MasterState& state;
    const IngestStats& stats;
    const Heads& heads;
    const WriterRegistry& registry;
    IngestStore& ingest_store;
    ReadStore& read_store;
    WriterDirector& director;
  };
  explicit AdminService(Parts parts) : parts_(std::move(parts)) {}

  grpc::Status Flush(grpc::ServerContext* call, const pb::FlushRequest* request,
                     pb::FlushResponse* response) override;
  grpc::Status GetStatus(grpc::ServerContext* call, const pb::GetStatusRequest* request,
                         pb::GetStatusResponse* response) override;
  grpc::Status SetProfiling(grpc::ServerContext* call, const pb::SetProfilingRequest* request,
                            pb::SetProfilingResponse* response) override;

 private:
  const Parts parts_;
};

}  // namespace stepwell
