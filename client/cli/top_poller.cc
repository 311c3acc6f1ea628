#include "client/cli/top_poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/time/clock.h"
#include "base/check.h"
#include "base/steady_time.h"

namespace stepwell::cli {
namespace {

// The master is asked a fifth of the time at most.
constexpr int kPauseFactor = 4;

}  // namespace

TopPoller::TopPoller(MasterClient& master, TopReader& reader, TopData first,
                     absl::Duration interval)
    : master_(master),
      reader_(reader),
      interval_(interval),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      look_{std::make_shared<const TopData>(std::move(first)), {}},
      answered_us_(absl::ToUnixMicros(absl::Now())) {
  STEPWELL_CHECK(wake_fd_ >= 0);
  worker_ = Worker("stepwell-top", [this] { Run(); });
}

TopPoller::~TopPoller() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  master_.Cancel();
  worker_.Join();
  close(wake_fd_);
}

// At a steady pace, unless reading takes long: one that looks on is to cost its master little.
void TopPoller::Run() {
  SteadyTime due = SteadyTime::Now();
  absl::Duration took;
  while (true) {
    due = std::max(due + interval_, SteadyTime::Now() + kPauseFactor * took);
    {
      absl::MutexLock lock(&mu_);
      if (mu_.AwaitWithTimeout(absl::Condition(&stopping_), due.Left())) return;
    }
    const SteadyTime begin = SteadyTime::Now();
    ReadOnce();
    took = SteadyTime::Now() - begin;
  }
}

void TopPoller::ReadOnce() {
  absl::StatusOr<TopData> data = reader_.Read();
  {
    absl::MutexLock lock(&mu_);
    if (stopping_) return;
    if (data.ok()) {
      look_ = {std::make_shared<const TopData>(*std::move(data)), {}};
      answered_us_ = absl::ToUnixMicros(absl::Now());
    } else {
      look_.outage = {answered_us_, std::string(data.status().message())};
    }
  }
  const std::uint64_t one = 1;
  // Only a counter that is full already can refuse it.
  if (write(wake_fd_, &one, sizeof(one)) != sizeof(one)) return;
}

TopPoller::Look TopPoller::Take() {
  std::uint64_t count = 0;
  // Nothing new is as good.
  if (read(wake_fd_, &count, sizeof(count)) < 0) count = 0;
  absl::MutexLock lock(&mu_);
  return look_;
}

}  // namespace stepwell::cli
