// AdminService: the gRPC skin of what operators ask.
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "server/access_control.h"
#include "server/caps_wire.h"
#include "server/fold_loop.h"
#include "server/heads.h"
#include "server/ingest_stats.h"
#include "server/master_state.h"
#include "server/profiling_windows.h"
#include "server/sweep_loop.h"
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
    WriterRegistry& registry;
    IngestStore& ingest_store;
    ReadStore& read_store;
    WriterDirector& director;
    CapsStore& caps_store;
    SweepLoop& sweep_loop;
    ProfilingWindows& windows;
    const Clock& clock;
    const AccessControl* access = nullptr;  // null = nobody is asked for a token
  };
  explicit AdminService(Parts parts) : parts_(std::move(parts)) {}

  grpc::Status Flush(grpc::ServerContext* call, const pb::FlushRequest* request,
                     pb::FlushResponse* response) override;
  grpc::Status GetStatus(grpc::ServerContext* call, const pb::GetStatusRequest* request,
                         pb::GetStatusResponse* response) override;
  grpc::Status SetProfiling(grpc::ServerContext* call, const pb::SetProfilingRequest* request,
                            pb::SetProfilingResponse* response) override;
  // In admin_caps_service.cc.
  grpc::Status GetCaps(grpc::ServerContext* call, const pb::GetCapsRequest* request,
                       pb::GetCapsResponse* response) override;
  grpc::Status SetCaps(grpc::ServerContext* call, const pb::SetCapsRequest* request,
                       pb::SetCapsResponse* response) override;
  grpc::Status PreviewCaps(grpc::ServerContext* call, const pb::PreviewCapsRequest* request,
                           pb::PreviewCapsResponse* response) override;
  grpc::Status SweepCaps(grpc::ServerContext* call, const pb::SweepCapsRequest* request,
                         pb::SweepCapsResponse* response) override;
  grpc::Status ArchiveTrial(grpc::ServerContext* call, const pb::ArchiveTrialRequest* request,
                            pb::ArchiveTrialResponse* response) override;
  grpc::Status DeleteTrial(grpc::ServerContext* call, const pb::DeleteTrialRequest* request,
                           pb::DeleteTrialResponse* response) override;

 private:
  // What a caps store's failure means to who called. `epoch` is that under which it was asked.
  grpc::Status CapsError(const absl::Status& status, std::int64_t epoch) const;
  // How many writers of the trial are open and were heard of of late.
  int LivingWriters(TrialId trial_id) const;
  void TellWriters(TrialId trial_id, const Complaint& why) const;

  const Parts parts_;
};

}  // namespace stepwell
