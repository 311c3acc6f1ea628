// Sensor: one source of system metrics, a file of the kernel or a device. SensorFinder: what looks
// for devices, which come and go. Both stand below SensorSet, which says when they are asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/agent/sensors/reading.h"

namespace stepwell::agent {

// How often a sensor is asked: at each tick of the sampler, but no oftener than each so many
// milliseconds; any number will do. Sensors of one cadence are read together, as one tick group.
enum class Cadence : std::uint32_t {
  kFast = 1,       // below the shortest interval: at each tick
  kSlow = 10'000,  // what moves slowly and costs more
};

// Between two readings, by a sampler of that interval.
inline absl::Duration IntervalOf(Cadence cadence, absl::Duration interval) {
  return std::max(interval, absl::Milliseconds(static_cast<std::uint32_t>(cadence)));
}

// Which agents of a machine can measure the same.
enum class SeenBy {
  kMachine,    // all of them
  kDevice,     // those that are given the device
  kContainer,  // those of that container
};

struct SensorFace {
  // For logs and absences, unique in its set: "cpu", or a device's UUID.
  std::string name;
  // A set that wants none of the group does not ask the sensor.
  std::string metric_group;
  Cadence cadence = Cadence::kFast;
  SeenBy seen_by = SeenBy::kMachine;
};

// Not what is left to another agent of the machine.
inline bool IsWanted(const SensorFace& face, const SensorSelection& selection) {
  if (!selection.WantsGroup(face.metric_group)) return false;
  switch (face.seen_by) {
    case SeenBy::kMachine:
      return !selection.leaves_machine();
    case SeenBy::kDevice:
      return !selection.LeavesGpu(face.name);
    case SeenBy::kContainer:
      return true;
  }
  return true;
}

class Sensor {
 public:
  explicit Sensor(SensorFace face) : face_(std::move(face)) {}
  virtual ~Sensor() = default;
  Sensor(const Sensor&) = delete;
  Sensor& operator=(const Sensor&) = delete;

  const SensorFace& face() const { return face_; }
  // Adds samples, and an absence for each that cannot be had, again at each reading while it lasts.
  // Confined to one thread at a time.
  virtual void Read(Reading& reading) = 0;
  // Rates begin anew at the next two readings: after a pause they would average over it.
  virtual void Forget() {}

 private:
  const SensorFace face_;
};

// What one look for devices brought.
struct Findings {
  // Only such as no earlier look found.
  std::vector<std::unique_ptr<Sensor>> sensors;
  // Standing until the next look.
  std::vector<Absence> absences;
};

class SensorFinder {
 public:
  explicit SensorFinder(std::string metric_group) : metric_group_(std::move(metric_group)) {}
  virtual ~SensorFinder() = default;
  SensorFinder(const SensorFinder&) = delete;
  SensorFinder& operator=(const SensorFinder&) = delete;

  const std::string& metric_group() const { return metric_group_; }
  // May block for long: SensorSet calls it on a thread of its own.
  virtual Findings Find() = 0;

 private:
  const std::string metric_group_;
};

}  // namespace stepwell::agent
