#include "client/agent/clock_calls.h"

#include <grpcpp/grpcpp.h>

#include "stepwell/v1/clock.grpc.pb.h"

namespace stepwell::agent {
namespace {

// Longer than any answer that would tell more than is known already.
constexpr int kPatienceSeconds = 10;
// Beside the writers of a stream, which have ids of 16 bytes.
constexpr char kAsker[] = "clock";

}  // namespace

struct ClockCalls::Stub {
  std::unique_ptr<v1::ClockService::Stub> calls;
};

struct ClockCalls::Call {
  grpc::ClientContext context;
  v1::ReadClockRequest request;
  v1::ReadClockResponse response;
};

ClockCalls::ClockCalls(const std::shared_ptr<grpc::Channel>& channel, ClockOffset& offset,
                       const Clock& clock)
    : offset_(offset),
      clock_(clock),
      stub_(std::make_unique<Stub>(Stub{v1::ClockService::NewStub(channel)})) {}

ClockCalls::~ClockCalls() {
  absl::MutexLock lock(&mu_);
  if (is_under_way_) call_->context.TryCancel();
  const auto is_over = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return !is_under_way_; };
  mu_.Await(absl::Condition(&is_over));
}

void ClockCalls::Tend(const std::function<std::string()>& token) {
  Call* call = nullptr;
  {
    absl::MutexLock lock(&mu_);
    if (is_under_way_ || !offset_.IsAskDue(clock_.Monotonic())) return;
    call_ = std::make_unique<Call>();
    call = call_.get();
    is_under_way_ = true;
  }
  if (const std::string shown = token(); !shown.empty()) {
    call->context.AddMetadata("authorization", "Bearer " + shown);
  }
  call->context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                          gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN)));
  offset_.OnAsked(kAsker, clock_.Monotonic());
  // Whatever it ends with, a master of a release before this call among it: the next one is asked when it is due.
  stub_->calls->async()->ReadClock(
      &call->context, &call->request, &call->response, [this, call](const grpc::Status& status) {
        const absl::Duration now = clock_.Monotonic();
        if (status.ok()) {
          offset_.OnAnswered(kAsker, absl::FromUnixNanos(call->response.server_time_ns()), now);
        }
        absl::MutexLock lock(&mu_);
        is_under_way_ = false;
      });
}

}  // namespace stepwell::agent
