// ClockGrpcService: tells agents the master's time, so that they know how far their machines' clocks are from it. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include "base/clock.h"
#include "server/access_control.h"
#include "stepwell/v1/clock.grpc.pb.h"

namespace stepwell {

class ClockGrpcService final : public v1::ClockService::Service {
 public:
  // Both outlive this; `access` null: nobody is asked.
  ClockGrpcService(const Clock& clock, const AccessControl* access)
      : clock_(clock), access_(access) {}

  grpc::Status ReadClock(grpc::ServerContext* context, const v1::ReadClockRequest* request,
                         v1::ReadClockResponse* response) override;

 private:
  const Clock& clock_;
  const AccessControl* const access_;
};

}  // namespace stepwell
