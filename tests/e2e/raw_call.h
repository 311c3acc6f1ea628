// RawCall: one call of any method by its name, with messages as bytes: for services whose generated
// code no package carries (grpc.health.v1, grpc.reflection.v1alpha).
//
//   const RawAnswer answer = CallRaw(*client.channel(), "/grpc.health.v1.Health/Check", "");
#pragma once

#include <grpcpp/grpcpp.h>

#include <string>

#include "absl/time/time.h"

namespace stepwell::testing {

struct RawAnswer {
  grpc::Status status;
  // The first message of the answer.
  std::string bytes;
};

// Sends one message, half-closes, reads one; blocks for `patience` at most.
RawAnswer CallRaw(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                  const std::string& request, absl::Duration patience = absl::Seconds(10));

// What a load balancer sees: "SERVING", "NOT_SERVING", "UNKNOWN", or the status in words.
std::string Health(const std::shared_ptr<grpc::Channel>& channel, const std::string& service = "");

}  // namespace stepwell::testing
