#include "server/grpc_access.h"

#include <google/protobuf/message.h>
#include <grpc/grpc_security_constants.h>

#include <string>
#include <utility>
#include <vector>

#include "base/tls/certificate_names.h"
#include "server/grpc_error.h"
#include "server/http/inner_peer.h"
#include "server/http/rpc_channel.h"
#include "server/peer_address.h"
#include "server/rate_limits.h"

namespace stepwell {
namespace {

// None within this process, and where no certificate was asked for.
std::vector<std::string> NamesOf(const grpc::ServerContextBase& call) {
  const auto peer = call.auth_context();
  if (peer == nullptr) return {};
  const auto shown = peer->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (shown.size() != 1) return {};
  return CertificateNames({shown.front().data(), shown.front().size()});
}

}  // namespace

std::string AddressOf(const grpc::ServerContextBase& call) {
  const auto told = call.client_metadata().find(kPeerMetadata);
  if (told != call.client_metadata().end()) {
    if (auto inner = InnerPeerOf({told->second.data(), told->second.size()})) return *inner;
  }
  return AddressOfPeer(call.peer());
}

absl::StatusOr<Caller> CallerOf(const AccessControl* access, const grpc::ServerContextBase& call) {
  if (access == nullptr || !access->asks()) return Caller();
  const auto [first, last] = call.client_metadata().equal_range("authorization");
  if (first == last) return access->IdentifyCertificate(NamesOf(call));
  if (std::next(first) != last) return absl::UnauthenticatedError(kNoToken);
  return access->Identify({first->second.data(), first->second.size()});
}

GrpcEntry EnterCallAs(const AccessControl* access, const grpc::ServerContextBase& call,
                      const google::protobuf::Descriptor& request_type,
                      const google::protobuf::Message& message) {
  if (access == nullptr) return {};
  absl::StatusOr<Caller> caller = CallerOf(access, call);
  if (!caller.ok()) return {GrpcError(caller.status()), nullptr};
  if (RateLimits* rates = access->rates()) {
    // Before the database is asked where a trial lies.
    const absl::Status may = rates->Take(RateKind::kCalls, {AddressOf(call), caller->get()}, 1);
    if (!may.ok()) return {GrpcError(may), nullptr};
  }
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
