// RpcStatus: how a call ended, in gRPC's numbers but without gRPC. A value.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace stepwell {

struct RpcStatus {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message = {};
  // A serialized google.rpc.Status, whose details go out; empty = none.
  std::string details = {};

  bool ok() const { return code == absl::StatusCode::kOk; }
};

}  // namespace stepwell
