#include "server/grpc_deadline.h"

#include <grpc/support/time.h>

namespace stepwell {

SteadyTime CallDeadline(const grpc::ServerContext& call) {
  const gpr_timespec told = call.raw_deadline();
  if (gpr_time_cmp(told, gpr_inf_future(told.clock_type)) == 0) return SteadyTime::InfiniteFuture();
  const gpr_timespec left = gpr_time_sub(told, gpr_now(told.clock_type));
  return SteadyTime::Now() + absl::Seconds(left.tv_sec) + absl::Nanoseconds(left.tv_nsec);
}

gpr_timespec ToGrpcTime(SteadyTime time) {
  const absl::Duration left = time.Left();
  if (left == absl::InfiniteDuration()) return gpr_inf_future(GPR_CLOCK_MONOTONIC);
  return gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                      gpr_time_from_nanos(absl::ToInt64Nanoseconds(left), GPR_TIMESPAN));
}

}  // namespace stepwell
