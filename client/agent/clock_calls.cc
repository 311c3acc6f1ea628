#include "client/agent/clock_calls.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <utility>

#include "stepwell/v1/clock.grpc.pb.h"

namespace stepwell::agent {
namespace {

// Longer than any answer that would tell more than is known already.
constexpr int kPatienceSeconds = 10;
// Beside the writers of a stream, which have ids of 16 bytes.
constexpr char kAsker[] = "clock";
// A master takes 8 KiB of headers.
constexpr std::size_t kTokenBytesMax = 4096;

// gRPC ends its process where a header has another byte, and a writer's token is whatever its program said.
bool IsHeaderText(const std::string& text) {
  return text.size() <= kTokenBytesMax &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace

ClockCalls::ClockCalls(std::shared_ptr<grpc::Channel> channel, ClockOffset& offset,
                       const Clock& clock)
    : channel_(std::move(channel)),
      offset_(offset),
      clock_(clock),
      worker_("agent-clock", [this] { Run(); }) {}

ClockCalls::~ClockCalls() {
  {
    absl::MutexLock lock(&mu_);
    is_leaving_ = true;
    if (context_ != nullptr) context_->TryCancel();
  }
  worker_.Join();
}

void ClockCalls::Tend(const std::function<std::string()>& token) {
  if (!offset_.IsAskDue(clock_.Monotonic())) return;
  std::string shown = token();
  absl::MutexLock lock(&mu_);
  if (!is_under_way_) wanted_ = IsHeaderText(shown) ? std::move(shown) : std::string();
}

void ClockCalls::Run() {
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return is_leaving_ || wanted_.has_value();
  };
  while (true) {
    std::string token;
    {
      absl::MutexLock lock(&mu_);
      mu_.Await(absl::Condition(&has_work));
      if (is_leaving_) return;
      token = *std::exchange(wanted_, std::nullopt);
      is_under_way_ = true;
    }
    Ask(token);
  }
}

void ClockCalls::Ask(const std::string& token) {
  grpc::ClientContext context;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  context.set_deadline(gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
                                    gpr_time_from_seconds(kPatienceSeconds, GPR_TIMESPAN)));
  {
    absl::MutexLock lock(&mu_);
    if (is_leaving_) return;
    context_ = &context;
  }
  const std::unique_ptr<v1::ClockService::Stub> stub = v1::ClockService::NewStub(channel_);
  v1::ReadClockResponse response;
  offset_.OnAsked(kAsker, clock_.Monotonic());
  const grpc::Status status = stub->ReadClock(&context, v1::ReadClockRequest(), &response);
  const absl::Duration now = clock_.Monotonic();
  // Whatever it ends with, a master of a release before this call among it: the next one is asked when it is due.
  if (status.ok()) {
    offset_.OnAnswered(kAsker, absl::FromUnixNanos(response.server_time_ns()), now);
  }
  absl::MutexLock lock(&mu_);
  context_ = nullptr;
  is_under_way_ = false;
}

}  // namespace stepwell::agent
