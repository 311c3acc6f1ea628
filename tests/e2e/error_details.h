// What a failed call says for programs: google.rpc details out of a gRPC status.
//
//   const auto info = DetailOf<google::rpc::ErrorInfo>(status);
#pragma once

#include <grpcpp/grpcpp.h>

#include <optional>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace stepwell::testing {

// The first detail of that kind; nothing where there is none.
template <typename Detail>
std::optional<Detail> DetailOf(const grpc::Status& status) {
  google::rpc::Status wire;
  if (!wire.ParseFromString(status.error_details())) return std::nullopt;
  for (const auto& packed : wire.details()) {
    if (Detail detail; packed.UnpackTo(&detail)) return detail;
  }
  return std::nullopt;
}

}  // namespace stepwell::testing
