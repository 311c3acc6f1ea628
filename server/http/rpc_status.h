// RpcStatus: how a call ended, in gRPC's numbers but without gRPC. A value.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace stepwell {

struct RpcStatus {
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string message = {};
  // A serialized google.rpc.Status, whose details go out; empty = none.
  std::string details = {};
  // The metadata that ended the call, without gRPC's own: names in small letters, values as they were set, bytes where
  // the name ends in -bin.
  std::vector<std::pair<std::string, std::string>> trailers = {};

  bool ok() const { return code == absl::StatusCode::kOk; }
};

}  // namespace stepwell
