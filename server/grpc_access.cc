#include "server/grpc_access.h"

#include <google/protobuf/message.h>
#include <grpc/grpc_security_constants.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/tls/certificate_names.h"
#include "server/grpc_error.h"
#include "server/http/inner_peer.h"
#include "server/http/rpc_channel.h"
#include "server/peer_address.h"
#include "server/rate_limits.h"
#include "server/stranger_watch.h"
#include "server/token_text.h"

namespace stepwell {
namespace {

// Empty within this process, and where no certificate was asked for. The call's.
std::string_view CertificateOf(const grpc::AuthContext* peer) {
  if (peer == nullptr) return {};
  const auto shown = peer->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (shown.size() != 1) return {};
  return {shown.front().data(), shown.front().size()};
}

// A call of the HTTP port's, which has asked already.
std::optional<std::string> InnerAddressOf(const grpc::ServerContextBase& call) {
  const auto told = call.client_metadata().find(kPeerMetadata);
  if (told == call.client_metadata().end()) return std::nullopt;
  return InnerPeerOf({told->second.data(), told->second.size()});
}

// What is shown, and whose it is. `rates` null: wrong ones are not counted.
absl::StatusOr<Caller> Identified(const AccessControl& access, const grpc::ServerContextBase& call,
                                  RateLimits* rates) {
  const auto peer = call.auth_context();
  const std::string_view certificate = CertificateOf(peer.get());
  const auto [first, last] = call.client_metadata().equal_range("authorization");
  absl::StatusOr<Caller> caller = absl::UnauthenticatedError(kNoToken);
  if (first == last) {
    caller = access.IdentifyCertificate(certificate.empty() ? std::vector<std::string>()
                                                            : CertificateNames(certificate));
  } else if (std::next(first) == last) {
    const std::string_view shown(first->second.data(), first->second.size());
    caller = access.Identify(shown);
    // Who shows none has guessed nothing.
    if (rates != nullptr && !ShownToken(shown).empty()) {
      caller = rates->JudgeToken(AddressOfPeer(call.peer()), std::move(caller));
    }
  }
  if (!caller.ok() || certificate.empty()) return caller;
  return access.Until(*caller, CertificateEnd(certificate));
}

// Whatever becomes of the call behind this, it was one, and the database was not asked yet where a trial lies. `rule` null:
// it reads nothing.
absl::StatusOr<Caller> CountedCaller(const AccessControl& access,
                                     const grpc::ServerContextBase& call, const AccessRule* rule) {
  STEPWELL_ASSIGN_OR_RETURN(Caller caller, CallerOf(&access, call));
  RateLimits* const rates = access.rates();
  if (rates == nullptr) return caller;
  const std::string address = AddressOf(call);
  const RatePayer payer{address, caller.get()};
  STEPWELL_RETURN_IF_ERROR(rates->Take(RateKind::kCalls, payer, 1));
  // What it reads is paid for as it is written (GrpcAnswers).
  if (rule == nullptr || rule->right != Right::kRead) return caller;
  STEPWELL_RETURN_IF_ERROR(rates->Take(RateKind::kReadBytes, payer, 0));
  return caller;
}

}  // namespace

std::string AddressOf(const grpc::ServerContextBase& call) {
  if (auto inner = InnerAddressOf(call)) return *inner;
  return AddressOfPeer(call.peer());
}

absl::StatusOr<Caller> CallerOf(const AccessControl* access, const grpc::ServerContextBase& call) {
  if (access == nullptr || !access->asks()) return Caller();
  auto caller = Identified(*access, call, InnerAddressOf(call) ? nullptr : access->rates());
  if (caller.ok() && access->strangers() != nullptr)
    access->strangers()->Know(call.peer(), *caller);
  return caller;
}

absl::StatusOr<Caller> KnownCallerOf(const AccessControl* access,
                                     const grpc::ServerContextBase& call) {
  if (access == nullptr || !access->asks()) return Caller();
  return Identified(*access, call, nullptr);
}

GrpcEntry EnterCall(const AccessControl* access, const grpc::ServerContextBase& call,
                    const google::protobuf::Message& request) {
  if (access == nullptr) return {};
  const AccessRule* const rule = FindRule(*request.GetDescriptor());
  absl::StatusOr<Caller> caller = CountedCaller(*access, call, rule);
  if (!caller.ok()) return {GrpcError(caller.status()), nullptr};
  const absl::Status may = access->CheckAs(rule, *caller, request);
  if (!may.ok()) return {GrpcError(may), nullptr};
  return {grpc::Status::OK, *std::move(caller)};
}

GrpcEntry EnterIngest(const AccessControl* access, const grpc::ServerContextBase& call) {
  if (access == nullptr) return {};
  absl::StatusOr<Caller> caller = CountedCaller(*access, call, nullptr);
  if (!caller.ok()) return {GrpcError(caller.status()), nullptr};
  const absl::Status may = access->CheckIngests(*caller);
  if (!may.ok()) return {GrpcError(may), nullptr};
  return {grpc::Status::OK, *std::move(caller)};
}

GrpcEntry EnterOther(const AccessControl& access, const grpc::ServerContextBase& call) {
  absl::StatusOr<Caller> caller = CountedCaller(access, call, nullptr);
  if (!caller.ok()) return {GrpcError(caller.status()), nullptr};
  return {grpc::Status::OK, *std::move(caller)};
}

grpc::Status MayEnter(const AccessControl* access, const Caller& caller,
                      const google::protobuf::Descriptor& request_type,
                      const google::protobuf::Message& message) {
  if (access == nullptr) return grpc::Status::OK;
  return GrpcError(access->CheckAs(FindRule(request_type), caller, message));
}

grpc::Status EndOfCall(const Caller& caller, grpc::Status status) {
  return HasEnded(caller) && !status.ok() ? GrpcError(TokenEnded()) : std::move(status);
}

}  // namespace stepwell
