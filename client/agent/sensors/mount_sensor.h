// MountSensor: how full file systems are. One sensor asks all local ones; each of a file server has
// a sensor of its own, for one that hangs must hold up nothing else. MountFinder looks for those of
// servers.
#pragma once

#include <set>
#include <string>

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

// Confined to one thread.
class LocalMountSensor final : public Sensor {
 public:
  explicit LocalMountSensor(KernelText kernel)
      : Sensor({"mounts", "disk", Cadence::kSlow}), kernel_(std::move(kernel)) {}
  void Read(Reading& reading) override;

 private:
  const KernelText kernel_;
  int sample_count_ = 1;
};

// Confined to one thread.
class ServerMountSensor final : public Sensor {
 public:
  ServerMountSensor(std::string path, KernelText kernel)
      : Sensor({path, "disk", Cadence::kSlow}), kernel_(std::move(kernel)), path_(path) {}
  void Read(Reading& reading) override;

 private:
  const KernelText kernel_;
  const std::string path_;
};

// Confined to one thread.
class MountFinder final : public SensorFinder {
 public:
  // Of one machine, so many threads can hang.
  static constexpr std::size_t kServerCountMax = 8;

  explicit MountFinder(KernelText kernel) : SensorFinder("disk"), kernel_(std::move(kernel)) {}
  Findings Find() override;

 private:
  const KernelText kernel_;
  std::set<std::string> known_;
};

}  // namespace stepwell::agent
