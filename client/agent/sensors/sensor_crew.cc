#include "client/agent/sensors/sensor_crew.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace stepwell::agent {

// Its question and answer are the asker's while it is not out, and a thread's while it is; State::mu is
// held where that changes.
class SensorCrew::Device {
 public:
  explicit Device(std::shared_ptr<Sensor> sensor) : sensor_(std::move(sensor)) {}

  void Read() {
    if (order_->forget) sensor_->Forget();
    Reading reading(order_->context);
    sensor_->Read(reading);
    order_.reset();
    answer_ = std::move(reading);
  }

 private:
  friend class SensorCrew;
  const std::shared_ptr<Sensor> sensor_;
  std::optional<Order> order_;
  std::optional<Reading> answer_;
  // Of the last question.
  bool out_ = false;
  std::int64_t tick_ = 0;
};

SensorCrew::~SensorCrew() {
  std::vector<bool> are_busy;
  {
    absl::MutexLock lock(&state_->mu);
    state_->stopping = true;
    state_->queue.clear();
    for (const Worker& worker : workers_) are_busy.push_back(*worker.busy);
  }
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    if (are_busy[i]) {
      workers_[i].thread.detach();
    } else {
      workers_[i].thread.join();
    }
  }
}

std::shared_ptr<SensorCrew::Device> SensorCrew::Join(std::shared_ptr<Sensor> sensor) {
  return std::make_shared<Device>(std::move(sensor));
}

void SensorCrew::Begin() {
  absl::MutexLock lock(&state_->mu);
  ++state_->tick;
  state_->open_count = 0;
  // Those that are out since an earlier tick, and one that reads.
  state_->running_max = state_->running_count + 1;
}

bool SensorCrew::Ask(const std::shared_ptr<Device>& device, Order order) {
  absl::MutexLock lock(&state_->mu);
  if (device->out_) return false;
  device->answer_.reset();
  device->order_ = std::move(order);
  device->out_ = true;
  device->tick_ = state_->tick;
  ++state_->open_count;
  state_->queue.push_back(device);
  Man();
  return true;
}

void SensorCrew::Await(absl::Duration patience) {
  // Of short intervals even slow devices get a thread each in time.
  const absl::Duration quick = std::min(kQuick, patience / 16);
  State& state = *state_;
  absl::MutexLock lock(&state.mu);
  const auto answered = [&state]()
                            ABSL_SHARED_LOCKS_REQUIRED(state.mu) { return state.open_count == 0; };
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(patience);
  while (true) {
    const absl::Duration left = absl::FromChrono(end - std::chrono::steady_clock::now());
    if (left <= absl::ZeroDuration()) break;
    // With all of them under way there is nothing to do but wait.
    const absl::Duration step = state.queue.empty() ? left : std::min(quick, left);
    if (state.mu.AwaitWithTimeout(absl::Condition(&answered), step)) return;
    if (state.queue.empty()) continue;
    ++state.running_max;
    Man();
  }
  state.running_max += static_cast<int>(state.queue.size());
  for (std::size_t left = state.queue.size(); left > 0; --left) Man();
}

std::optional<Reading> SensorCrew::Take(Device& device) {
  absl::MutexLock lock(&state_->mu);
  if (device.out_) return std::nullopt;
  return std::exchange(device.answer_, std::nullopt);
}

void SensorCrew::Man() {
  State& state = *state_;
  const int wanted_count =
      std::min(static_cast<int>(state.queue.size()), state.running_max - state.running_count);
  if (wanted_count <= state.idle_count) return;
  Worker worker{{}, std::make_shared<bool>(false)};
  try {
    worker.thread = std::thread([state_kept = state_, busy = worker.busy] {
      pthread_setname_np(pthread_self(), "sense-devices");
      Serve(*state_kept, *busy);
    });
  } catch (const std::system_error&) {
    // No more processes allowed: whoever is there serves the queue.
    return;
  }
  ++state.idle_count;
  workers_.push_back(std::move(worker));
}

void SensorCrew::Serve(State& state, bool& busy) {
  absl::MutexLock lock(&state.mu);
  const auto due = [&state]() ABSL_SHARED_LOCKS_REQUIRED(state.mu) {
    return state.stopping || (!state.queue.empty() && state.running_count < state.running_max);
  };
  while (true) {
    state.mu.Await(absl::Condition(&due));
    if (state.stopping) return;
    const std::shared_ptr<Device> device = std::move(state.queue.front());
    state.queue.pop_front();
    --state.idle_count;
    ++state.running_count;
    busy = true;
    state.mu.Unlock();
    device->Read();
    state.mu.Lock();
    busy = false;
    --state.running_count;
    ++state.idle_count;
    device->out_ = false;
    if (device->tick_ == state.tick) --state.open_count;
  }
}

}  // namespace stepwell::agent
