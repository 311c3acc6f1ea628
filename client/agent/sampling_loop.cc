#include "client/agent/sampling_loop.h"

#include <algorithm>
#include <utility>

namespace stepwell::agent {
namespace {

constexpr absl::Duration kFirstRatesAfter = absl::Milliseconds(100);
// The agent's loop takes them ten times a second.
constexpr std::size_t kTickCountMax = 1024;

}  // namespace

SamplingLoop::SamplingLoop(SystemSampler sampler, absl::Duration interval, const Clock& clock)
    : sampler_(std::move(sampler)), clock_(clock), interval_(interval) {
  worker_ = Worker("agent-sampler", [this] { Run(); });
}

void SamplingLoop::Run() {
  const absl::Duration started = clock_.Monotonic();
  TakeOne(0);
  bool go_on = WaitUntil(started + kFirstRatesAfter);
  absl::Duration due = started + kFirstRatesAfter;
  std::uint64_t late_count = 0;
  while (go_on) {
    bool paused = false;
    absl::Duration interval;
    {
      absl::MutexLock lock(&mu_);
      paused = paused_;
      interval = interval_;
      changed_ = false;
    }
    if (paused) {
      sampler_.Forget();
    } else {
      TakeOne(late_count);
    }
    // On a fixed grid; what was slept through (a stopped process, a hung sensor) is not made up.
    due += interval;
    const std::int64_t behind = (clock_.Monotonic() - due) / interval;
    late_count = paused ? 0 : static_cast<std::uint64_t>(std::max<std::int64_t>(behind, 0));
    due += interval * std::max<std::int64_t>(behind, 0);
    go_on = WaitUntil(due);
    absl::MutexLock lock(&mu_);
    if (changed_) due = clock_.Monotonic();
  }
  bool paused = false;
  {
    absl::MutexLock lock(&mu_);
    paused = paused_;
  }
  if (!paused) TakeOne(late_count);
}

void SamplingLoop::TakeOne(std::uint64_t late_count) {
  TimedTick timed;
  timed.time_us = absl::ToUnixMicros(clock_.Now());
  timed.tick = sampler_.Sample(clock_.Monotonic());
  absl::MutexLock lock(&mu_);
  timed.late_count = late_count + std::exchange(late_count_, 0);
  ticks_.push_back(std::move(timed));
  if (ticks_.size() > kTickCountMax) {
    late_count_ += 1 + ticks_.front().late_count;
    ticks_.pop_front();
  }
}

bool SamplingLoop::WaitUntil(absl::Duration due) {
  absl::MutexLock lock(&mu_);
  const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || changed_; };
  mu_.AwaitWithTimeout(absl::Condition(&wake), due - clock_.Monotonic());
  return !stopping_;
}

std::vector<TimedTick> SamplingLoop::TakeTicks() {
  absl::MutexLock lock(&mu_);
  std::vector<TimedTick> taken(std::make_move_iterator(ticks_.begin()),
                               std::make_move_iterator(ticks_.end()));
  ticks_.clear();
  return taken;
}

void SamplingLoop::SetInterval(absl::Duration interval) {
  absl::MutexLock lock(&mu_);
  changed_ = changed_ || interval != interval_;
  interval_ = interval;
}

void SamplingLoop::Pause(bool paused) {
  absl::MutexLock lock(&mu_);
  changed_ = changed_ || paused != paused_;
  paused_ = paused;
}

void SamplingLoop::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopping_ = true;
  }
  worker_.Join();
}

}  // namespace stepwell::agent
