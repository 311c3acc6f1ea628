// GrpcError: a failure as a gRPC status with google.rpc details, in error_details as clients expect it.
#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"
#include "server/complaint.h"
#include "server/error_details.h"

namespace stepwell {

grpc::Status GrpcError(const absl::Status& status, const ErrorDetails& details);
// What failed in the master (its database, an error of its own) is told in words of ours with a request id,
// by which the log has the whole of it; anything else as it stands, with the details of its payloads
// (DetailsOf). OK stays OK.
grpc::Status GrpcError(const absl::Status& status);
grpc::Status GrpcError(const Complaint& complaint);

}  // namespace stepwell
