#include "server/admin_service.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/steady_time.h"
#include "server/agent_census.h"
#include "server/grpc_access.h"
#include "server/grpc_deadline.h"
#include "server/grpc_error.h"
#include "server/ingest_stream.h"
#include "server/profiling_check.h"
#include "server/query_wire.h"
#include "server/text_check.h"

namespace stepwell {
namespace {

constexpr absl::Duration kFlushWaitMax = absl::Seconds(60);
constexpr absl::Duration kFindWaitMax = absl::Seconds(10);

// Bytes that are acked but recovering trials hide from a fold: Flush must not claim them.
absl::Status CheckRecovered(const MasterState& state) {
  const MasterState::Snapshot now = state.Get();
  if (!now.ready() || now.recovering) return absl::UnavailableError(now.reason());
  return absl::OkStatus();
}

grpc::Status NoTrial(const absl::Status& status) {
  return GrpcError(
      Complaint{absl::StatusCode::kNotFound, "TRIAL_NOT_FOUND", Shortened(status.message(), 1024)});
}

}  // namespace

grpc::Status AdminService::Flush(grpc::ServerContext* call, const pb::FlushRequest* request,
                                 pb::FlushResponse* response) {
  const GrpcEntry entry = EnterCall(parts_.access, *call, *request);
  if (!entry.ok()) return entry.status;
  if (request->trial_id() < 0) {
    return GrpcError(Invalid("TRIAL_ID", absl::StrCat("trial_id is ", request->trial_id(),
                                                      ", allowed are 0 (all) and above")));
  }
  if (const absl::Status ready = CheckRecovered(parts_.state); !ready.ok()) return GrpcError(ready);
  const SteadyTime deadline = std::min(CallDeadline(*call), SteadyTime::Now() + kFlushWaitMax);
  std::optional<TrialId> trial_id;
  if (request->trial_id() != 0) {
    // A fold asks nobody whose trial it is.
    const auto found = parts_.read_store.FindTrial({.trial_id = request->trial_id()},
                                                   ReadableProjects(entry.caller), deadline);
    if (absl::IsNotFound(found.status())) return NoTrial(found.status());
    if (!found.ok()) return GrpcError(found.status());
    trial_id = *found;
  }
  const auto folded = parts_.fold_loop.FoldNow(trial_id, deadline);
  if (!folded.ok()) return GrpcError(folded.status());
  response->set_sample_count(folded->sample_count);
  response->set_trial_count(folded->trial_count);
  return grpc::Status::OK;
}

grpc::Status AdminService::GetStatus(grpc::ServerContext* call, const pb::GetStatusRequest* request,
                                     pb::GetStatusResponse* response) {
  if (const GrpcEntry entry = EnterCall(parts_.access, *call, *request); !entry.ok()) {
    return entry.status;
  }
  const MasterState::Snapshot now = parts_.state.Get();
  response->set_version(parts_.version);
  response->set_master_id(parts_.master_id);
  response->set_epoch(now.epoch);
  response->set_role(now.role_name());
  response->set_database_up(now.database_up);
  response->set_database_error(now.database_error);
  response->set_disk_free_bytes(now.disk_free_bytes());
  response->set_disk_error(now.disk_error);
  response->set_streams_open(parts_.stats.streams_open);
  response->set_writers_open(static_cast<std::int64_t>(parts_.registry.open_count()));
  response->set_unfolded_bytes(parts_.heads.unfolded_bytes());
  response->set_chunks_committed(parts_.stats.chunks_committed);
  response->set_samples_committed(parts_.stats.samples_committed);
  response->set_chunks_repeated(parts_.stats.chunks_repeated);
  response->set_chunks_rejected(parts_.stats.chunks_rejected);
  response->set_commit_groups(parts_.stats.commit_groups);
  response->set_commits_in_doubt(parts_.stats.commits_in_doubt);
  response->set_samples_replayed(parts_.stats.samples_replayed);
  response->set_sequences_lost(parts_.stats.sequences_lost);
  std::vector<ConnectedAgent> connected;
  parts_.registry.ForEachStream([&](const IngestStream& stream) {
    if (auto agent = stream.agent()) connected.push_back(*std::move(agent));
  });
  const AgentCensus census = TakeCensus(std::move(connected), kAgentsToldMax);
  for (const ConnectedAgent& agent : census.agents) {
    pb::ConnectedAgent& told = *response->add_agents();
    told.set_agent_id(agent.agent_id);
    told.set_agent_version(agent.agent_version);
    told.set_writers_open(agent.writers_open);
    told.set_since_time_us(agent.since_time_us);
    told.set_seen_time_us(agent.seen_time_us);
  }
  response->set_agents_left_out(census.left_out);
  response->set_answered_time_us(absl::ToUnixMicros(parts_.clock.Now()));
  return grpc::Status::OK;
}

grpc::Status AdminService::SetProfiling(grpc::ServerContext* call,
                                        const pb::SetProfilingRequest* request,
                                        pb::SetProfilingResponse* response) {
  const GrpcEntry entry = EnterCall(parts_.access, *call, *request);
  if (!entry.ok()) return entry.status;
  TrialSelector trial;
  TrialProfiling wanted;
  if (auto complaint = CheckSetProfiling(*request, trial, wanted)) return GrpcError(*complaint);
  const MasterState::Snapshot now = parts_.state.Get();
  if (!now.ready()) return GrpcError(absl::UnavailableError(now.reason()));
  const SteadyTime deadline = std::min(CallDeadline(*call), SteadyTime::Now() + kFindWaitMax);
  const auto trial_id =
      parts_.read_store.FindTrial(trial, ReadableProjects(entry.caller), deadline);
  if (absl::IsNotFound(trial_id.status())) return NoTrial(trial_id.status());
  if (!trial_id.ok()) return GrpcError(trial_id.status());
  const auto stored = parts_.ingest_store.SetProfiling(*trial_id, wanted, now.epoch);
  if (absl::IsNotFound(stored.status())) return NoTrial(stored.status());
  if (absl::IsAborted(stored.status())) {
    parts_.state.ReportLost(now.epoch);
    return GrpcError(absl::UnavailableError("another master owns the database now"));
  }
  if (!stored.ok()) return GrpcError(stored.status());
  const int told = parts_.director.SetProfiling(*trial_id, *stored);
  log::Info("profiling_set", {{"trial", Value(*trial_id)},
                              {"on", stored->on},
                              {"interval_us", stored->interval_us},
                              {"groups", stored->metric_groups.size()},
                              {"writers_told", told}});
  response->set_trial_id(Value(*trial_id));
  *response->mutable_profiling() = ToWire(*stored);
  response->set_writers_told(told);
  return grpc::Status::OK;
}

}  // namespace stepwell
