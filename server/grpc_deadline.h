// GrpcDeadline: gRPC's deadlines as SteadyTime and back. It keeps them by CLOCK_MONOTONIC itself; its
// deadline() tells them as times of the wall clock, which may be set before they are looked at.
//
//   const SteadyTime deadline = std::min(CallDeadline(*context), SteadyTime::Now() + kFindWaitMax);
#pragma once

#include <grpcpp/server_context.h>

#include "base/steady_time.h"

namespace stepwell {

// InfiniteFuture where the client set none.
SteadyTime CallDeadline(const grpc::ServerContext& call);

// For gRPC's own waits.
gpr_timespec ToGrpcTime(SteadyTime time);

}  // namespace stepwell
