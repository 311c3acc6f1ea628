// GrpcDoorkeeper: what is called on the gRPC port and is no method of ours, where tokens are asked for: health
// (grpc.health.v1), and methods that there are not. Each is asked for its token first, before its message is
// read: without one health and what is not there look alike (a method of ours does, too, to who sends it a message of its own). It stands in for gRPC's own health
// service, which asks nobody; there is no reflection, whose streams hold a thread each for as long as a client
// likes. Thread-safe.
//
//   GrpcDoorkeeper doorkeeper(access, {"stepwell.v1.QueryService"});
//   builder.RegisterCallbackGenericService(&doorkeeper);
//   doorkeeper.SetServing(true);
#pragma once

#include <grpcpp/generic/async_generic_service.h>

#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/access_control.h"

namespace stepwell {

class GrpcDoorkeeper final : public grpc::CallbackGenericService {
 public:
  // `names`: of the services that a client may ask for by theirs; the empty one is the whole. `access` outlives it.
  GrpcDoorkeeper(const AccessControl& access, const std::vector<std::string>& names)
      : access_(access), names_(names.begin(), names.end()) {}

  // What health checks answer; who watches hears of it.
  void SetServing(bool serving) ABSL_LOCKS_EXCLUDED(mu_);

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* call) override;

 private:
  class Check;
  class Watch;

  bool IsKnown(const std::string& name) const { return name.empty() || names_.count(name) > 0; }
  // As HealthCheckResponse.ServingStatus.
  int StatusOf(const std::string& name) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const AccessControl& access_;
  const std::set<std::string> names_;
  absl::Mutex mu_;
  bool is_serving_ ABSL_GUARDED_BY(mu_) = false;
  std::set<Watch*> watches_ ABSL_GUARDED_BY(mu_);
};

}  // namespace stepwell
