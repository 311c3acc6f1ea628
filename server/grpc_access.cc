#include "server/grpc_access.h"

#include <google/protobuf/message.h>

#include <utility>

#include "server/grpc_error.h"

namespace stepwell {

absl::StatusOr<Caller> CallerOf(const AccessControl* access, const grpc::ServerContextBase& call) {
  if (access == nullptr || !access->asks()) return Caller();
  const auto [first, last] = call.client_metadata().equal_range("authorization");
  if (first == last || std::next(first) != last) return absl::UnauthenticatedError(kNoToken);
  return access->Identify({first->second.data(), first->second.size()});
}

GrpcEntry EnterCallAs(const AccessControl* access, const grpc::ServerContextBase& call,
                      const google::protobuf::Descriptor& request_type,
                      const google::protobuf::Message& message) {
  if (access == nullptr || !access->asks()) return {};
  absl::StatusOr<Caller> caller = CallerOf(access, call);
  if (!caller.ok()) return {GrpcError(caller.status()), nullptr};
  const absl::Status may = access->CheckAs(FindRule(request_type), *caller, message);
  if (!may.ok()) return {GrpcError(may), nullptr};
  return {grpc::Status::OK, *std::move(caller)};
}

GrpcEntry EnterCall(const AccessControl* access, const grpc::ServerContextBase& call,
                    const google::protobuf::Message& request) {
  return EnterCallAs(access, call, *request.GetDescriptor(), request);
}

grpc::Status EndOfCall(const Caller& caller, grpc::Status status) {
  return HasEnded(caller) && !status.ok() ? GrpcError(TokenEnded()) : std::move(status);
}

}  // namespace stepwell
