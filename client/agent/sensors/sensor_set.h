// SensorSet: all sensors of a machine, read together at a tick: those of the kernel's own files one
// after the other on one watched thread, those of devices by a crew of as few as it takes. A sensor that
// fails or hangs is left out and named; it hides nothing else and comes back by itself. What a slow
// device answers after its tick belongs to that tick all the same. It stands between the sensors and
// SamplingLoop. Confined to one thread.
//
//   SensorSet set({}, clock);
//   set.Add(std::make_unique<MemorySensor>(KernelText("/")));
//   Reading reading = set.Read(Cadence::kFast, selection, {.time_us = time_us});
//   for (const PastReading& past : set.TakePast()) ...
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "client/agent/sensors/sensor.h"
#include "client/agent/sensors/sensor_crew.h"
#include "client/agent/sensors/sensor_round.h"
#include "client/agent/sensors/watched.h"

namespace stepwell::agent {

// What a device answered after the tick at which it was asked. Its absences are told with the tick
// that took it.
struct PastReading {
  std::int64_t time_us = 0;
  Reading reading;
};

class SensorSet {
 public:
  struct Options {
    // How long a tick waits for a device at most; half the interval where that is less.
    absl::Duration patience_max = absl::Milliseconds(250);
    // A device's call that is out for longer hangs; one for less is slow.
    absl::Duration hang_min = absl::Milliseconds(500);
    // How long for one of the kernel's files, whatever the interval: then it is given up on, and no
    // later tick waits for it.
    absl::Duration round_patience = absl::Milliseconds(500);
    // The first look for devices is waited for, so that the first tick has them in it if they answer
    // at once; it is due 100 ms after the trial opened.
    absl::Duration first_look_patience = absl::Milliseconds(50);
    // Between two looks.
    absl::Duration find_interval = absl::Seconds(10);
  };
  // Devices of one machine: so many threads where all of them hang.
  static constexpr std::size_t kWatchedCountMax = 128;

  // `clock` outlives the set, and any thread of it that hangs.
  SensorSet(Options options, const Clock& clock);

  // For what the kernel answers from memory: no thread of its own.
  void Add(std::unique_ptr<Sensor> sensor);
  // For a device, which takes its time.
  void AddWatched(std::unique_ptr<Sensor> sensor);
  void AddFinder(std::unique_ptr<SensorFinder> finder);

  struct Tick {
    // What its samples will be stamped with; comes back with those that are late.
    std::int64_t time_us = 0;
    // None follows: devices are waited for until they hang.
    bool is_last = false;
  };
  // One tick of the sensors of `cadence` that `selection` wants.
  Reading Read(Cadence cadence, std::shared_ptr<const SensorSelection> selection, Tick tick);
  Reading Read(Cadence cadence, std::shared_ptr<const SensorSelection> selection) {
    return Read(cadence, std::move(selection), Tick());
  }
  // What the last Read found to have come of ticks before it, of each device in the order of time.
  // The next Read throws away what nobody took.
  std::vector<PastReading> TakePast() { return std::exchange(past_, {}); }
  // Rates begin anew.
  void Forget();
  // Of the sensors that there are by now: Read is for each of them.
  const std::set<Cadence>& cadences() const { return cadences_; }

 private:
  struct WatchedSensor {
    explicit WatchedSensor(const std::shared_ptr<Sensor>& sensor);
    const SensorFace face;
    const std::shared_ptr<SensorCrew::Device> device;
    // The question whose answer nobody has taken yet.
    struct Asked {
      std::int64_t time_us = 0;
      absl::Duration at;
      // A tick found it out for too long.
      bool hung = false;
    };
    std::optional<Asked> asked;
    // Of the newest answer: they stand until the next one.
    std::vector<Absence> absences;
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
  // A library that does not answer may hide devices.
  void MissHanging(WatchedFinder& finder, absl::Duration now) const;
  // The answer to what an earlier tick asked, if it has come.
  void TakeLate(WatchedSensor& sensor);
  // The answer to what this tick asked, if it came in time.
  void Take(WatchedSensor& sensor, Tick tick, Reading& reading);
  static void Note(WatchedSensor& sensor, const Reading& answer);
  // The tick has no answer of it: `tick_count` ticks lack its samples.
  void MissBusy(WatchedSensor& sensor, int tick_count, Reading& reading) const;

  const Options options_;
  const Clock& clock_;
  const std::shared_ptr<SeriesPool> pool_ = std::make_shared<SeriesPool>();
  std::set<Cadence> cadences_ = {Cadence::kFast};
  SensorRound round_;
  SensorCrew crew_;
  std::list<WatchedSensor> watched_;
  std::list<WatchedFinder> finders_;
  // Of each group, those for which there was no place.
  std::map<std::string, int> left_out_;
  std::vector<PastReading> past_;
};

}  // namespace stepwell::agent
