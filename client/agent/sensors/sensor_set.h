// SensorSet: all sensors of a machine, read together at a tick: those of the kernel's own files one
// after the other on one watched thread, those of devices each on one of its own. A sensor that
// fails or hangs is left out and named; it hides nothing else and comes back by itself. It stands
// between the sensors and SamplingLoop. Confined to one thread.
//
//   SensorSet set({}, clock);
//   set.Add(std::make_unique<MemorySensor>(KernelText("/")));
//   Reading reading = set.Read(Cadence::kFast);
#pragma once

#include <list>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "client/agent/sensors/sensor.h"
#include "client/agent/sensors/sensor_round.h"
#include "client/agent/sensors/watched.h"

namespace stepwell::agent {

class SensorSet {
 public:
  struct Options {
    // How long a tick waits for a device at most; half the interval where that is less.
    absl::Duration patience_max = absl::Milliseconds(250);
    // How long for one of the kernel's files, whatever the interval: then it is given up on, and no
    // later tick waits for it.
    absl::Duration round_patience = absl::Milliseconds(500);
    // The first look for devices is waited for, so that the first tick has them in it if they answer
    // at once; it is due 100 ms after the trial opened.
    absl::Duration first_look_patience = absl::Milliseconds(50);
    // Between two looks.
    absl::Duration find_interval = absl::Seconds(10);
  };
  // Devices of one machine, so many threads.
  static constexpr std::size_t kWatchedCountMax = 128;

  // `clock` outlives the set, and any thread of it that hangs.
  SensorSet(Options options, const Clock& clock);

  // For what the kernel answers from memory: no thread of its own.
  void Add(std::unique_ptr<Sensor> sensor);
  // For a device, which takes its time.
  void AddWatched(std::unique_ptr<Sensor> sensor);
  void AddFinder(std::unique_ptr<SensorFinder> finder);

  // One tick of the sensors of `cadence` that `selection` wants.
  Reading Read(Cadence cadence, std::shared_ptr<const SensorSelection> selection);
  // Rates begin anew.
  void Forget();
  // Of the sensors that there are by now: Read is for each of them.
  const std::set<Cadence>& cadences() const { return cadences_; }

 private:
  // What a watched thread is told: with whom to read, and whether rates begin anew.
  struct Order {
    ReadingContext context;
    bool forget = false;
  };
  struct WatchedSensor {
    explicit WatchedSensor(const std::shared_ptr<Sensor>& sensor);
    const SensorFace face;
    Watched<Order, Reading> watched;
    // Since when it gives no answer.
    absl::Duration silent_since = absl::InfiniteDuration();
    int sample_count = 1;
    bool forget = false;
  };
  struct Nothing {};
  struct WatchedFinder {
    explicit WatchedFinder(const std::shared_ptr<SensorFinder>& finder);
    const std::string metric_group;
    // Sensors move, so that an answer is a pointer.
    Watched<Nothing, std::shared_ptr<Findings>> watched;
    absl::Duration asked_at = -absl::InfiniteDuration();
    bool waiting = false;
    std::vector<Absence> absences;
  };

  static bool IsWanted(const WatchedFinder& finder, const SensorSelection& selection);
  void Look(const SensorSelection& selection);
  void TakeFindings(WatchedFinder& finder, absl::Duration patience);
  void Take(WatchedSensor& sensor, absl::Duration deadline, Reading& reading);
  void MissSilent(const WatchedSensor& sensor, Reading& reading) const;

  const Options options_;
  const Clock& clock_;
  const std::shared_ptr<SeriesPool> pool_ = std::make_shared<SeriesPool>();
  std::set<Cadence> cadences_ = {Cadence::kFast};
  SensorRound round_;
  std::list<WatchedSensor> watched_;
  std::list<WatchedFinder> finders_;
};

}  // namespace stepwell::agent
