#include "server/stop_watch_loop.h"

#include <utility>

#include "absl/time/time.h"

namespace stepwell {
namespace {

constexpr absl::Duration kWatchEach = absl::Seconds(1);

}  // namespace

StopWatchLoop::StopWatchLoop(const std::string& url, std::shared_ptr<PgCut> cut)
    : watch_({}, url, std::move(cut)) {}

void StopWatchLoop::Start() {
  worker_ = Worker("stop-watch", [this] { Run(); });
}

void StopWatchLoop::Stop() {
  {
    const absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  worker_.Join();
}

void StopWatchLoop::Run() {
  do {
    watch_.Look();
  } while (WaitForTime());
}

bool StopWatchLoop::WaitForTime() {
  const absl::MutexLock lock(&mu_);
  mu_.AwaitWithTimeout(absl::Condition(&stopping_), kWatchEach);
  return !stopping_;
}

}  // namespace stepwell
