#include "server/clock_service.h"

#include "server/grpc_access.h"

namespace stepwell {

grpc::Status ClockGrpcService::ReadClock(grpc::ServerContext* context,
                                         const v1::ReadClockRequest* request,
                                         v1::ReadClockResponse* response) {
  const GrpcEntry entry = EnterCall(access_, *context, *request);
  if (!entry.ok()) return entry.status;
  // Last, so that none of what was looked up lies between this and the answer.
  response->set_server_time_ns(absl::ToUnixNanos(clock_.Now()));
  return grpc::Status::OK;
}

}  // namespace stepwell
