// GrpcError: a failure as a gRPC status with google.rpc details (ErrorInfo always, RetryInfo where
// coming again helps, BadRequest where a field is wrong), in error_details as clients expect it.
#pragma once

#include <grpcpp/support/status.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/complaint.h"

namespace stepwell {

struct FieldViolation {
  std::string field;
  std::string description;
};

struct ErrorDetails {
  // UPPER_SNAKE_CASE; empty = the code's name.
  std::string reason;
  std::optional<absl::Duration> retry_delay;
  std::vector<FieldViolation> violations;
  // What else a program should know, by name.
  std::map<std::string, std::string> metadata = {};
};

grpc::Status GrpcError(const absl::Status& status, const ErrorDetails& details);
// What failed in the master (its database, an error of its own) is told in words of ours with a request id,
// by which the log has the whole of it; anything else as it stands. Reason from the payload
// "stepwell/reason" where there is one, metadata from "stepwell/metadata/NAME"; kUnavailable comes with a
// RetryInfo of one second. OK stays OK.
grpc::Status GrpcError(const absl::Status& status);
grpc::Status GrpcError(const Complaint& complaint);

}  // namespace stepwell
