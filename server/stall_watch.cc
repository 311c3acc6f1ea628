#include "server/stall_watch.h"

#include <algorithm>
#include <utility>

namespace stepwell {
namespace {

constexpr absl::Duration kLookEach = absl::Milliseconds(500);

}  // namespace

StallWatch::StallWatch(absl::Duration stall_max) : stall_max_(stall_max) {
  worker_ = Worker("stall-watch", [this] { Run(); });
}

StallWatch::~StallWatch() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  worker_.Join();
}

void StallWatch::Run() {
  const auto has_work = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return stopping_ || !calls_.empty();
  };
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    mu_.Await(absl::Condition(&has_work));
    mu_.AwaitWithTimeout(absl::Condition(&stopping_), std::min(stall_max_ / 4, kLookEach));
    LookLocked();
  }
}

void StallWatch::LookLocked() {
  const SteadyTime now = SteadyTime::Now();
  for (Call* call : calls_) {
    const absl::Duration most = HasEnded(call->caller_) ? kEndedGrace : stall_max_;
    if (call->since_ > now - most) continue;
    call->since_ = SteadyTime::InfiniteFuture();  // once
    call->cancel_();
  }
}

StallWatch::Call::Call(StallWatch& watch, std::function<void()> cancel, Caller caller)
    : watch_(watch), cancel_(std::move(cancel)), caller_(std::move(caller)) {
  absl::MutexLock lock(&watch_.mu_);
  watch_.calls_.insert(this);
}

StallWatch::Call::~Call() {
  absl::MutexLock lock(&watch_.mu_);
  watch_.calls_.erase(this);
}

void StallWatch::Call::Since(SteadyTime since) {
  absl::MutexLock lock(&watch_.mu_);
  since_ = since;
}

StallWatch::Write::Write(Call& call) : call_(call) { call_.Since(SteadyTime::Now()); }

}  // namespace stepwell
