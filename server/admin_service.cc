#include "server/admin_service.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/grpc_error.h"

namespace stepwell {
namespace {

constexpr absl::Duration kFlushWaitMax = absl::Seconds(60);

// Bytes that are acked but recovering trials hide from a fold: Flush must not claim them.
absl::Status CheckRecovered(const MasterState& state) {
  const MasterState::Snapshot now = state.Get();
  if (!now.ready() || now.recovering) return absl::UnavailableError(now.reason());
  return absl::OkStatus();
}

}  // namespace

grpc::Status AdminService::Flush(grpc::ServerContext* call, const pb::FlushRequest* request,
                                 pb::FlushResponse* response) {
  if (request->trial_id() < 0) {
    return GrpcError(Invalid("TRIAL_ID", absl::StrCat("trial_id is ", request->trial_id(),
                                                      ", allowed are 0 (all) and above")));
  }
  if (const absl::Status ready = CheckRecovered(parts_.state); !ready.ok()) return GrpcError(ready);
  std::optional<TrialId> trial_id;
  if (request->trial_id() != 0) trial_id = static_cast<TrialId>(request->trial_id());
  const absl::Time deadline =
      std::min(absl::FromChrono(call->deadline()), absl::Now() + kFlushWaitMax);
  const auto folded = parts_.fold_loop.FoldNow(trial_id, deadline);
  if (!folded.ok()) return GrpcError(folded.status());
  response->set_sample_count(folded->sample_count);
  response->set_trial_count(folded->trial_count);
  return grpc::Status::OK;
}

grpc::Status AdminService::GetStatus(grpc::ServerContext*, const pb::GetStatusRequest*,
                                     pb::GetStatusResponse* response) {
  const MasterState::Snapshot now = parts_.state.Get();
  response->set_version(parts_.version);
  response->set_master_id(parts_.master_id);
  response->set_epoch(now.epoch);
  response->set_role(now.role_name());
  response->set_database_up(now.database_up);
  response->set_database_error(now.database_error);
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
  return grpc::Status::OK;
}

}  // namespace stepwell
