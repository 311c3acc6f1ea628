// GrpcAccess: who calls a method of gRPC, from outside or for a request of the HTTP port, and whether it may:
// the first line of each method of our services.
//
//   const GrpcEntry entry = EnterCall(access_, *context, *request);
//   if (!entry.ok()) return entry.status;
#pragma once

#include <grpcpp/grpcpp.h>

#include "server/access_control.h"

namespace stepwell {

struct GrpcEntry {
  grpc::Status status;
  Caller caller;  // null where nobody is asked
  bool ok() const { return status.ok(); }
};

// Where the call comes from, as AddressKey: its peer, or what the HTTP port says of a call of its own.
std::string AddressOf(const grpc::ServerContextBase& call);

// By the Authorization that the call shows; without one by the certificate of its connection. `access` null: nobody
// is asked. Wrong tokens are counted for the address they come from (RateLimits::JudgeToken): once for each call.
absl::StatusOr<Caller> CallerOf(const AccessControl* access, const grpc::ServerContextBase& call);
// Likewise, of a call that was let in: nothing is counted.
absl::StatusOr<Caller> KnownCallerOf(const AccessControl* access,
                                     const grpc::ServerContextBase& call);

// Counts the call, too (RateLimits).
GrpcEntry EnterCall(const AccessControl* access, const grpc::ServerContextBase& call,
                    const google::protobuf::Message& request);
// Likewise, of a call whose trial is told later: whether it may ingest anything at all. MayEnter, once it was told.
GrpcEntry EnterIngest(const AccessControl* access, const grpc::ServerContextBase& call);
// Likewise, of what is no method of our services: whether somebody is known.
GrpcEntry EnterOther(const AccessControl& access, const grpc::ServerContextBase& call);
// What EnterCall asks of a caller's grants, of trials that stand in a message which is not of its request's type. Counts
// nothing.
grpc::Status MayEnter(const AccessControl* access, const Caller& caller,
                      const google::protobuf::Descriptor& request_type,
                      const google::protobuf::Message& message);

// How a call ends whose caller's token may have ended meanwhile.
grpc::Status EndOfCall(const Caller& caller, grpc::Status status);

}  // namespace stepwell
