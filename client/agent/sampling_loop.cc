#include "client/agent/sampling_loop.h"

#include <algorithm>
#include <utility>

namespace stepwell::agent {
namespace {

// The agent's loop takes them ten times a second.
constexpr std::size_t kTickCountMax = 1024;

}  // namespace

SamplingLoop::SamplingLoop(std::unique_ptr<SensorSet> sensors, SensorSelection selection,
                           const Clock& clock, std::function<void()> on_ticks)
    : sensors_(std::move(sensors)), clock_(clock), on_ticks_(std::move(on_ticks)) {
  AddSchedules(selection, clock.Monotonic());
  state_.selection = std::make_shared<SensorSelection>(std::move(selection));
  worker_ = Worker("agent-sampler", [this] { Run(); });
}

void SamplingLoop::Run() {
  bool was_paused = false;
  while (true) {
    const absl::Duration due = NextDue();
    const State state = WaitUntil(was_paused ? absl::InfiniteDuration() : due);
    // A wait may end some microseconds early.
    const absl::Duration now =
        state.timed_out ? std::max(clock_.Monotonic(), due) : clock_.Monotonic();
    if (state.paused && !was_paused) sensors_->Forget();
    if (!state.paused && was_paused) {
      for (auto& [cadence, schedule] : schedules_) schedule.Restart(now);
    }
    was_paused = state.paused;
    if (state.stopping) {
      if (state.paused) return;
      const std::int64_t time_us = absl::ToUnixMicros(clock_.Now());
      for (const auto& [cadence, schedule] : schedules_) {
        TakeOne(cadence, {time_us, /*is_last=*/true}, 0, state.selection);
      }
      return;
    }
    if (state.paused) continue;
    for (auto& [cadence, schedule] : schedules_) {
      schedule.SetInterval(IntervalOf(cadence, state.selection->interval()), now);
    }
    TakeDue(now, state);
    on_ticks_();
    AddSchedules(*state.selection, now);
  }
}

void SamplingLoop::TakeDue(absl::Duration now, const State& state) {
  // What is due together has one time.
  const std::int64_t time_us = absl::ToUnixMicros(clock_.Now());
  for (auto& [cadence, schedule] : schedules_) {
    if (schedule.due() > now) continue;
    TakeOne(cadence, {.time_us = time_us}, schedule.Take(now), state.selection);
  }
}

absl::Duration SamplingLoop::NextDue() const {
  absl::Duration due = absl::InfiniteDuration();
  for (const auto& [cadence, schedule] : schedules_) due = std::min(due, schedule.due());
  return due;
}

void SamplingLoop::AddSchedules(const SensorSelection& selection, absl::Duration now) {
  for (const Cadence cadence : sensors_->cadences()) {
    schedules_.try_emplace(cadence, IntervalOf(cadence, selection.interval()), now);
  }
}

void SamplingLoop::TakeOne(Cadence cadence, SensorSet::Tick tick, std::uint64_t late_count,
                           const std::shared_ptr<const SensorSelection>& selection) {
  Reading reading = sensors_->Read(cadence, selection, tick);
  std::vector<PastReading> past = sensors_->TakePast();
  const absl::Duration interval = IntervalOf(cadence, selection->interval());
  absl::MutexLock lock(&mu_);
  if (late_count > 0) {
    NoteLateLocked(late_count, MissedBefore(tick.time_us, late_count, interval));
  }
  late_count = std::exchange(late_count_, 0);
  const AbsenceSpan span = late_span_;
  for (PastReading& late : past) {
    KeepLocked({cadence, late.time_us, /*is_past=*/true, 0, {}, std::move(late.reading)});
  }
  KeepLocked({cadence, tick.time_us, /*is_past=*/false, late_count, span, std::move(reading)});
}

void SamplingLoop::NoteLateLocked(std::uint64_t count, AbsenceSpan span) {
  if (count == 0) return;
  const bool is_first = late_count_ == 0;
  late_count_ += count;
  late_span_ = {
      is_first ? span.first_time_us : std::min(late_span_.first_time_us, span.first_time_us),
      is_first ? span.last_time_us : std::max(late_span_.last_time_us, span.last_time_us)};
}

void SamplingLoop::KeepLocked(TimedTick tick) {
  ticks_.push_back(std::move(tick));
  if (ticks_.size() <= kTickCountMax) return;
  const TimedTick& gone = ticks_.front();
  NoteLateLocked(gone.late_count, gone.late_span);
  NoteLateLocked(1, {gone.time_us, gone.time_us});
  ticks_.pop_front();
}

SamplingLoop::State SamplingLoop::WaitUntil(absl::Duration due) {
  absl::MutexLock lock(&mu_);
  const auto wake = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return changed_; };
  State state;
  state.timed_out = !mu_.AwaitWithTimeout(absl::Condition(&wake), due - clock_.Monotonic());
  changed_ = false;
  state.paused = state_.paused;
  state.stopping = state_.stopping;
  state.selection = state_.selection;
  return state;
}

std::vector<TimedTick> SamplingLoop::TakeTicks() {
  absl::MutexLock lock(&mu_);
  std::vector<TimedTick> taken(std::make_move_iterator(ticks_.begin()),
                               std::make_move_iterator(ticks_.end()));
  ticks_.clear();
  return taken;
}

void SamplingLoop::Select(SensorSelection selection) {
  absl::MutexLock lock(&mu_);
  if (selection == *state_.selection) return;
  state_.selection = std::make_shared<SensorSelection>(std::move(selection));
  changed_ = true;
}

void SamplingLoop::Pause(bool paused) {
  absl::MutexLock lock(&mu_);
  changed_ = changed_ || paused != state_.paused;
  state_.paused = paused;
}

void SamplingLoop::Stop() {
  {
    absl::MutexLock lock(&mu_);
    state_.stopping = true;
    changed_ = true;
  }
  worker_.Join();
}

}  // namespace stepwell::agent
