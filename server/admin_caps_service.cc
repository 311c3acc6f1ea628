// What AdminService does about what is kept: caps, sweeps, trials that are archived or deleted.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/steady_time.h"
#include "server/admin_service.h"
#include "server/grpc_access.h"
#include "server/grpc_deadline.h"
#include "server/grpc_error.h"
#include "server/ingest_stream.h"
#include "server/query_wire.h"
#include "server/text_check.h"
#include "server/told_error.h"

namespace stepwell {
namespace {

constexpr absl::Duration kSweepWaitMax = absl::Seconds(60);
constexpr absl::Duration kFindWaitMax = absl::Seconds(10);
// As in completeness: who was not heard of for so long counts as gone.
constexpr absl::Duration kHeardOfLately = absl::Seconds(60);

MaybeComplaint CheckTrial(const pb::TrialRef& ref_untrusted, TrialSelector& trial) {
  auto selector = CheckTrialRef(ref_untrusted);
  if (!selector.ok()) return Invalid("TRIAL_REF", std::string(selector.status().message()));
  trial = *std::move(selector);
  return std::nullopt;
}

}  // namespace

grpc::Status AdminService::CapsError(const absl::Status& status, std::int64_t epoch) const {
  const auto text = [&] { return Shortened(TellClient(status).message, 1024); };
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return GrpcError(Invalid("CAPS", text()));
    case absl::StatusCode::kNotFound:
      return GrpcError(Complaint{status.code(), "TRIAL_NOT_FOUND", text()});
    case absl::StatusCode::kFailedPrecondition:
      return GrpcError(Complaint{status.code(), "CAPS_LIMIT", text()});
    case absl::StatusCode::kAborted:
      parts_.state.ReportLost(epoch);
      return GrpcError(absl::UnavailableError("another master owns the database now"));
    default:
      return GrpcError(status);
  }
}

grpc::Status AdminService::GetCaps(grpc::ServerContext* call, const pb::GetCapsRequest* request,
                                   pb::GetCapsResponse* response) {
  const GrpcEntry entry = EnterCall(parts_.access, *call, *request);
  if (!entry.ok()) return entry.status;
  CapsTarget target;
  if (auto complaint = CheckGetCaps(*request, target)) return GrpcError(*complaint);
  const auto report = parts_.caps_store.Get(target, ReadableProjects(entry.caller));
  if (!report.ok()) return CapsError(report.status(), 0);
  *response = ToWire(*report);
  return grpc::Status::OK;
}

grpc::Status AdminService::SetCaps(grpc::ServerContext* call, const pb::SetCapsRequest* request,
                                   pb::SetCapsResponse* response) {
  const GrpcEntry entry = EnterCall(parts_.access, *call, *request);
  if (!entry.ok()) return entry.status;
  CapsChange change;
  if (auto complaint = CheckSetCaps(*request, change)) return GrpcError(*complaint);
  const MasterState::Snapshot now = parts_.state.Get();
  if (!now.ready()) return GrpcError(absl::UnavailableError(now.reason()));
  const auto report = parts_.caps_store.Set(
      now.epoch, change.target, ReadableProjects(entry.caller), change.caps, change.clear);
  if (!report.ok()) return CapsError(report.status(), now.epoch);
  parts_.windows.Reread();
  log::Info("caps_set", {{"place", static_cast<int>(report->place.owner)},
                         {"place_id", report->place.owner_id},
                         {"group", report->place.metric_group},
                         {"caps", ToWire(change.caps).ShortDebugString()},
                         {"cleared", change.clear.size()}});
  *response->mutable_set() = ToWire(report->set);
  for (pb::EffectiveCap& each : ToWire(report->effective)) {
    *response->add_effective() = std::move(each);
  }
  return grpc::Status::OK;
}

grpc::Status AdminService::PreviewCaps(grpc::ServerContext* call,
                                       const pb::PreviewCapsRequest* request,
                                       pb::PreviewCapsResponse* response) {
  const GrpcEntry entry = EnterCall(parts_.access, *call, *request);
  if (!entry.ok()) return entry.status;
  PreviewRequest preview;
  if (auto complaint = CheckPreviewCaps(*request, preview)) return GrpcError(*complaint);
  preview.now_us = absl::ToUnixMicros(parts_.clock.Now());
  const auto removals = parts_.caps_store.Preview(preview, ReadableProjects(entry.caller));
  if (!removals.ok()) return CapsError(removals.status(), 0);
  FillRemovals(*removals, *response);
  return grpc::Status::OK;
}

grpc::Status AdminService::SweepCaps(grpc::ServerContext* call, const pb::SweepCapsRequest* request,
                                     pb::SweepCapsResponse* response) {
  const GrpcEntry entry = EnterCall(parts_.access, *call, *request);
  if (!entry.ok()) return entry.status;
  std::optional<CapsTarget> target;
  if (auto complaint = CheckSweepCaps(*request, target)) return GrpcError(*complaint);
  const MasterState::Snapshot now = parts_.state.Get();
  if (!now.ready()) return GrpcError(absl::UnavailableError(now.reason()));
  // A little before the caller's own, so that it hears what went.
  const SteadyTime deadline =
      std::min(CallDeadline(*call) - absl::Seconds(1), SteadyTime::Now() + kSweepWaitMax);
  const auto swept =
      parts_.sweep_loop.SweepNow(target, ReadableProjects(entry.caller), deadline,
                                 [&] { return call->IsCancelled() || HasEnded(entry.caller); });
  if (!swept.ok()) return EndOfCall(entry.caller, CapsError(swept.status(), now.epoch));
  FillRemovals(swept->removed, *response);
  response->set_leaves_left(swept->leaves_left);
  return grpc::Status::OK;
}

grpc::Status AdminService::ArchiveTrial(grpc::ServerContext* call,
                                        const pb::ArchiveTrialRequest* request,
                                        pb::ArchiveTrialResponse* response) {
  const GrpcEntry entry = EnterCall(parts_.access, *call, *request);
  if (!entry.ok()) return entry.status;
  TrialSelector trial;
  if (auto complaint = CheckTrial(request->trial(), trial)) return GrpcError(*complaint);
  const MasterState::Snapshot now = parts_.state.Get();
  if (!now.ready()) return GrpcError(absl::UnavailableError(now.reason()));
  const auto archived = parts_.caps_store.Archive(now.epoch, trial, ReadableProjects(entry.caller),
                                                  request->archived());
  if (!archived.ok()) return CapsError(archived.status(), now.epoch);
  if (archived->archived) {
    TellWriters(archived->trial_id,
                {absl::StatusCode::kFailedPrecondition, "TRIAL_ARCHIVED",
                 absl::StrCat("trial ", Value(archived->trial_id),
                              " is archived: nothing is added to it; record under another name, or "
                              "take it out of the archive first")});
  }
  log::Info("trial_archived",
            {{"trial", Value(archived->trial_id)}, {"archived", archived->archived}});
  response->set_trial_id(Value(archived->trial_id));
  response->set_archived(archived->archived);
  return grpc::Status::OK;
}

grpc::Status AdminService::DeleteTrial(grpc::ServerContext* call,
                                       const pb::DeleteTrialRequest* request,
                                       pb::DeleteTrialResponse* response) {
  const GrpcEntry entry = EnterCall(parts_.access, *call, *request);
  if (!entry.ok()) return entry.status;
  TrialSelector trial;
  if (auto complaint = CheckTrial(request->trial(), trial)) return GrpcError(*complaint);
  const MasterState::Snapshot now = parts_.state.Get();
  if (!now.ready()) return GrpcError(absl::UnavailableError(now.reason()));
  const SteadyTime deadline = std::min(CallDeadline(*call), SteadyTime::Now() + kFindWaitMax);
  const auto trial_id =
      parts_.read_store.FindTrial(trial, ReadableProjects(entry.caller), deadline);
  // One that was deleted before is found by the caps store alone, which says what is left of it.
  if (!trial_id.ok() && !absl::IsNotFound(trial_id.status())) {
    return CapsError(trial_id.status(), now.epoch);
  }
  const int living = trial_id.ok() ? LivingWriters(*trial_id) : 0;
  if (living > 0) {
    return GrpcError(Complaint{
        absl::StatusCode::kFailedPrecondition, "TRIAL_IN_USE",
        absl::StrCat("trial ", Value(*trial_id), " has ", living,
                     " open writers that were heard of within 60 s; archive it first, which ends "
                     "them, or wait until they have closed")});
  }
  const auto deleted = parts_.caps_store.Delete(now.epoch, trial, ReadableProjects(entry.caller));
  if (!deleted.ok()) return CapsError(deleted.status(), now.epoch);
  TellWriters(deleted->trial_id,
              {absl::StatusCode::kFailedPrecondition, "TRIAL_DELETED",
               absl::StrCat("trial ", Value(deleted->trial_id),
                            " was deleted, and neither its number nor its name is used again; "
                            "record under another one")});
  log::Info("trial_deleted", {{"trial", Value(deleted->trial_id)},
                              {"samples", deleted->sample_count},
                              {"bytes", deleted->byte_count},
                              {"done", deleted->done}});
  response->set_trial_id(Value(deleted->trial_id));
  response->set_sample_count(deleted->sample_count);
  response->set_byte_count(deleted->byte_count);
  response->set_done(deleted->done);
  return grpc::Status::OK;
}

int AdminService::LivingWriters(TrialId trial_id) const {
  const SteadyTime now = SteadyTime::Now(parts_.clock);
  const auto seen = parts_.registry.Seen(trial_id);
  return static_cast<int>(std::count_if(seen.begin(), seen.end(), [&](const auto& entry) {
    return entry.second.open && now - entry.second.heard < kHeardOfLately;
  }));
}

void AdminService::TellWriters(TrialId trial_id, const Complaint& why) const {
  parts_.registry.ForEachStream([&](IngestStream& stream) { stream.RefuseTrial(trial_id, why); });
}

}  // namespace stepwell
