// Sensor: one source of system metrics, a file of the kernel or a device. SensorFinder: what looks
// for devices, which come and go. Both stand below SensorSet, which says when they are asked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/agent/sensors/reading.h"

namespace stepwell::agent {

// Each is a tick group of its own.
enum class Cadence {
  kFast = 1,  // the sampler's interval
  kSlow = 2,  // what moves slowly and costs more: each 10 s, or the interval where that is longer
};

struct SensorFace {
  // For logs and absences, unique in its set: "cpu", or a device's UUID.
  std::string name;
  // A set that wants none of the group does not ask the sensor.
  std::string metric_group;
  Cadence cadence = Cadence::kFast;
};

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
