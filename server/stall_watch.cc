#include "server/stall_watch.h"

#include <utility>

namespace stepwell {

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
  absl::MutexLock lock(&mu_);
  while (!stopping_) {
    mu_.AwaitWithTimeout(absl::Condition(&stopping_), stall_max_ / 4);
    const SteadyTime too_long = SteadyTime::Now() - stall_max_;
    for (Call* call : calls_) {
      if (call->since_ > too_long) continue;
      call->since_ = SteadyTime::InfiniteFuture();  // once
      call->cancel_();
    }
  }
}

StallWatch::Call::Call(StallWatch& watch, std::function<void()> cancel)
    : watch_(watch), cancel_(std::move(cancel)) {
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
