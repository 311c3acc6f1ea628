#include "tests/faults/master_client.h"

#include <grpcpp/grpcpp.h>

#include <bit>
#include <chrono>
#include <cstdint>

#include "stepwell/v1/admin.grpc.pb.h"
#include "stepwell/v1/query.grpc.pb.h"

namespace stepwell::faults {
namespace {

void SetDeadline(grpc::ClientContext& context, int seconds) {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
  context.set_wait_for_ready(true);
}

// A restarted master is found at once: no backoff of more than 200 ms.
std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 200);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

grpc::Status Archive(v1::AdminService::Stub& admin, const std::string& name, bool archived) {
  grpc::ClientContext context;
  SetDeadline(context, 10);
  v1::ArchiveTrialRequest request;
  request.mutable_trial()->set_external_id(name);
  request.set_archived(archived);
  v1::ArchiveTrialResponse response;
  return admin.ArchiveTrial(&context, request, &response);
}

}  // namespace

struct MasterClient::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : admin(v1::AdminService::NewStub(channel)), query(v1::QueryService::NewStub(channel)) {}
  const std::unique_ptr<v1::AdminService::Stub> admin;
  const std::unique_ptr<v1::QueryService::Stub> query;
};

MasterClient::MasterClient(const std::string& address)
    : stubs_(std::make_unique<Stubs>(Connect(address))) {}
MasterClient::~MasterClient() = default;

std::optional<v1::GetStatusResponse> MasterClient::Status() {
  grpc::ClientContext context;
  SetDeadline(context, 2);
  v1::GetStatusResponse response;
  if (!stubs_->admin->GetStatus(&context, {}, &response).ok()) return std::nullopt;
  return response;
}

std::optional<v1::GetTrialResponse> MasterClient::Trial(const std::string& name) {
  grpc::ClientContext context;
  SetDeadline(context, 5);
  v1::GetTrialRequest request;
  request.mutable_trial()->set_external_id(name);
  v1::GetTrialResponse response;
  if (!stubs_->query->GetTrial(&context, request, &response).ok()) return std::nullopt;
  return response;
}

std::string MasterClient::ReadSamples(const std::string& trial, const std::string& group,
                                      const std::string& name, std::vector<StoredSample>& samples) {
  grpc::ClientContext context;
  SetDeadline(context, 30);
  v1::ReadSamplesRequest request;
  request.mutable_trial()->set_external_id(trial);
  request.mutable_selector()->set_metric_group(group);
  request.mutable_selector()->set_name(name);
  // Pages that go on in the middle of a series.
  request.set_page_samples(100);
  const auto reader = stubs_->query->ReadSamples(&context, request);
  v1::ReadSamplesResponse page;
  while (reader->Read(&page)) {
    const auto rank = page.series().key().labels().find("rank");
    const bool has_rank = rank != page.series().key().labels().end();
    for (int i = 0; i < page.values_size(); ++i) {
      samples.push_back({group + "/" + name, has_rank ? std::stoi(rank->second) : -1,
                         page.batches(i), page.timestamps_us(i),
                         std::bit_cast<std::uint64_t>(page.values(i))});
    }
  }
  const grpc::Status status = reader->Finish();
  return status.ok() ? "" : status.error_message() + " (read samples)";
}

std::optional<v1::QueryBucketsResponse> MasterClient::Sum(const std::string& trial,
                                                          const std::string& group,
                                                          const std::string& name) {
  grpc::ClientContext context;
  SetDeadline(context, 30);
  v1::QueryBucketsRequest request;
  request.mutable_trial()->set_external_id(trial);
  v1::SeriesSelector& selector = *request.add_selectors();
  selector.set_metric_group(group);
  selector.set_name(name);
  request.set_max_buckets(1);
  v1::QueryBucketsResponse response;
  if (!stubs_->query->QueryBuckets(&context, request, &response).ok()) return std::nullopt;
  return response;
}

std::string MasterClient::SetCaps(const std::string& group, const v1::Caps& caps) {
  grpc::ClientContext context;
  SetDeadline(context, 10);
  v1::SetCapsRequest request;
  request.mutable_place()->set_metric_group(group);
  *request.mutable_caps() = caps;
  v1::SetCapsResponse response;
  const grpc::Status status = stubs_->admin->SetCaps(&context, request, &response);
  return status.ok() ? "" : status.error_message() + " (set caps)";
}

std::string MasterClient::Sweep() {
  grpc::ClientContext context;
  SetDeadline(context, 60);
  v1::SweepCapsRequest request;
  v1::SweepCapsResponse response;
  const grpc::Status status = stubs_->admin->SweepCaps(&context, request, &response);
  return status.ok() ? "" : status.error_message() + " (sweep)";
}

std::string MasterClient::SetArchived(const std::string& name, bool archived) {
  const grpc::Status status = Archive(*stubs_->admin, name, archived);
  return status.ok() ? "" : status.error_message() + " (archive)";
}

std::string MasterClient::Delete(const std::string& name) {
  const grpc::Status ended = Archive(*stubs_->admin, name, true);
  if (!ended.ok() && ended.error_code() != grpc::StatusCode::NOT_FOUND) {
    return ended.error_message() + " (archive)";
  }
  grpc::ClientContext deleting;
  SetDeadline(deleting, 20);
  v1::DeleteTrialRequest request;
  request.mutable_trial()->set_external_id(name);
  v1::DeleteTrialResponse response;
  const grpc::Status status = stubs_->admin->DeleteTrial(&deleting, request, &response);
  if (!status.ok()) return status.error_message() + " (delete)";
  return response.done() ? "" : "rows are left (delete)";
}

std::string MasterClient::Flush() {
  grpc::ClientContext context;
  SetDeadline(context, 60);
  v1::FlushResponse response;
  const grpc::Status status = stubs_->admin->Flush(&context, {}, &response);
  return status.ok() ? "" : status.error_message() + " (flush)";
}

}  // namespace stepwell::faults
