// RpcStatus: how a call ended, in gRPC's numbers but without gRPC. A value.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace stepwell {

// What comes with an answer, without gRPC's own: names in small letters, values as they were set, bytes where the name ends
// in -bin; those of one name in their order.
using RpcMetadata = std::vector<std::pair<std::string, std::string>>;

struct RpcStatus {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message = {};
  // A serialized google.rpc.Status, whose details go out; empty = none.
  std::string details = {};
  // The metadata that ended the call.
  RpcMetadata trailers = {};

  bool ok() const { return code == absl::StatusCode::kOk; }
};

}  // namespace stepwell
