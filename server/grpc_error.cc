#include "server/grpc_error.h"

#include "server/told_error.h"

namespace stepwell {

grpc::Status GrpcError(const absl::Status& status, const ErrorDetails& details) {
  if (status.ok()) return grpc::Status::OK;
  // Trailing metadata is bounded, and must be UTF-8.
  return {static_cast<grpc::StatusCode>(status.code()), ToldMessage(status),
          WireDetails(status, details)};
}

grpc::Status GrpcError(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  ErrorDetails details = DetailsOf(status);
  const ToldError told = TellClient(status);
  if (!told.request_id.empty()) details.metadata["request_id"] = told.request_id;
  return GrpcError(absl::Status(status.code(), told.message), details);
}

grpc::Status GrpcError(const Complaint& complaint) {
  ErrorDetails details{.reason = complaint.reason, .retry_delay = {}, .violations = {}};
  if (complaint.code == absl::StatusCode::kInvalidArgument) {
    // Messages begin with the field's path.
    details.violations.push_back(
        {complaint.message.substr(0, complaint.message.find_first_of(" :")), complaint.message});
  }
  details.retry_delay = complaint.retry_delay;
  if (!details.retry_delay && complaint.code == absl::StatusCode::kUnavailable) {
    details.retry_delay = absl::Seconds(1);
  }
  return GrpcError(absl::Status(complaint.code, complaint.message), details);
}

}  // namespace stepwell
