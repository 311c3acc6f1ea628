// SensorCrew: the threads that read devices. One of them reads one device after the other while each
// answers at once: a thread for each would be woken as often as there are devices. Where a call takes
// longer, another thread goes on with the rest, so that a device that hangs holds one thread and
// delays nobody for more than a moment. At most one call of a device is under way; while it is,
// nothing more is asked of it, and its late answer waits to be taken. Threads that still hang at the
// end are left behind, with what they need. Confined to the thread that asks.
//
//   SensorCrew crew;
//   const auto device = SensorCrew::Join(std::move(sensor));
//   crew.Begin();
//   if (crew.Ask(device, {context})) ...
//   crew.Await(absl::Milliseconds(250));
//   std::optional<Reading> reading = crew.Take(*device);
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class SensorCrew {
 public:
  // While devices still wait to be asked, whoever awaits them sends one more thread after each such time.
  static constexpr absl::Duration kQuick = absl::Milliseconds(2);

  // With whom to read, and whether rates begin anew.
  struct Order {
    ReadingContext context;
    bool forget = false;
  };
  class Device;

  SensorCrew() : state_(std::make_shared<State>()) {}
  SensorCrew(const SensorCrew&) = delete;
  SensorCrew& operator=(const SensorCrew&) = delete;
  ~SensorCrew();

  // One crew's for good; the thread that is in it keeps it alive.
  static std::shared_ptr<Device> Join(std::shared_ptr<Sensor> sensor);

  // A tick: what is asked from now on is what Await waits for.
  void Begin();
  // False: an earlier question is still being worked on. Whoever wants its answer takes it first.
  bool Ask(const std::shared_ptr<Device>& device, Order order);
  // Until all that was asked since Begin has answered, or `patience` is over. By then every device is
  // being asked, however many hang.
  void Await(absl::Duration patience);
  // The answer to the last question, once; none while it is out.
  std::optional<Reading> Take(Device& device);

  // Threads that were started.
  std::size_t thread_count() const { return workers_.size(); }

 private:
  struct State {
    absl::Mutex mu;
    std::deque<std::shared_ptr<Device>> queue ABSL_GUARDED_BY(mu);
    // Threads in a device's call, and how many there may be.
    int running_count ABSL_GUARDED_BY(mu) = 0;
    int running_max ABSL_GUARDED_BY(mu) = 1;
    int idle_count ABSL_GUARDED_BY(mu) = 0;
    // Questions since Begin that have no answer yet.
    int open_count ABSL_GUARDED_BY(mu) = 0;
    std::int64_t tick ABSL_GUARDED_BY(mu) = 0;
    bool stopping ABSL_GUARDED_BY(mu) = false;
  };
  struct Worker {
    std::thread thread;
    // In a device's call. Guarded by State::mu.
    std::shared_ptr<bool> busy;
  };

  static void Serve(State& state, bool& busy);
  // Starts a thread where one may run and none is idle.
  void Man() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mu);

  const std::shared_ptr<State> state_;  // the crew's and its threads'
  std::vector<Worker> workers_;
};

}  // namespace stepwell::agent
