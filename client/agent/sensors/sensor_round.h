// SensorRound: sensors that one thread reads one after the other, because the kernel answers them
// from memory: /proc may still hang (FUSE in a container, a disk that dies below a mount). One that
// does is given up on: it keeps the thread, is named as absent, another thread goes on with the
// rest, and it is asked again once its call returns. It stands between SensorSet and such sensors.
// Confined to one thread.
//
//   SensorRound round(absl::Milliseconds(500), clock);
//   round.Add(std::make_unique<MemorySensor>(kernel));
//   round.Read(Cadence::kFast, context, reading);
#pragma once

#include <list>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class SensorRound {
 public:
  // `clock` outlives the round, and any thread of it that hangs. Starts no thread before a reading.
  SensorRound(absl::Duration patience, const Clock& clock);
  // A thread that hangs is left behind, with what it needs.
  ~SensorRound();
  SensorRound(const SensorRound&) = delete;
  SensorRound& operator=(const SensorRound&) = delete;

  void Add(std::unique_ptr<Sensor> sensor);
  // Reads those of `cadence` that are wanted. Waits `patience` for one that hangs, twice that for
  // all; what could not be asked in that time is absent too, this once.
  void Read(Cadence cadence, const ReadingContext& context, Reading& reading);
  // Rates begin anew.
  void Forget();

 private:
  class Reader;  // a thread and what it is told
  struct Place {
    std::shared_ptr<Sensor> sensor;  // the round's and a reader's
    bool forget = false;
    // Of the last reading: what one lacks that brings nothing.
    int sample_count = 1;
    // That hangs in it. Null = none.
    std::shared_ptr<Reader> held_by;
    absl::Duration held_since;
  };

  std::vector<Place*> Due(Cadence cadence, const ReadingContext& context, Reading& reading);
  // Gives how many of `due`, from the front, need no further asking.
  std::size_t ReadSome(std::vector<Place*> due, const ReadingContext& context, absl::Duration end,
                       Reading& reading);
  void Miss(const Place& place, const absl::Status& why, Reading& reading) const;

  const absl::Duration patience_;
  const Clock& clock_;
  std::list<Place> places_;
  // Null = none serves. One that hangs is its place's alone.
  std::shared_ptr<Reader> reader_;
};

}  // namespace stepwell::agent
