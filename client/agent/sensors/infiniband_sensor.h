// InfinibandFinder: the ports of InfiniBand (and RoCE) adapters, from sysfs. Each has a sensor of what
// it sends and receives, and a slow one of how well. A counter is asked of the adapter's firmware, so a
// reading may hang: it is watched, and hides no other port. A machine without adapters has nothing to
// say. Each confined to one thread.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class InfinibandPortSensor final : public Sensor {
 public:
  // "mlx5_0/1", and the folder of its counters.
  InfinibandPortSensor(const std::string& port, std::string folder, KernelText kernel)
      : Sensor({"infiniband " + port, "network", Cadence::kFast}),
        kernel_(std::move(kernel)),
        port_(port),
        folder_(std::move(folder)) {}
  void Read(Reading& reading) override;
  void Forget() override;

 private:
  absl::Status ReadPort(Reading& reading);

  const KernelText kernel_;
  const std::string port_;
  const std::string folder_;
  Rate sent_;
  Rate received_;
};

// Packets, congestion, errors. Not each adapter counts all of them: a virtual one has few.
class InfinibandHealthSensor final : public Sensor {
 public:
  static constexpr std::size_t kCounterCount = 7;

  InfinibandHealthSensor(const std::string& port, std::string folder, KernelText kernel)
      : Sensor({"infiniband health " + port, "network", Cadence::kSlow}),
        kernel_(std::move(kernel)),
        port_(port),
        folder_(std::move(folder)) {}
  void Read(Reading& reading) override;
  void Forget() override { rates_ = {}; }

 private:
  const KernelText kernel_;
  const std::string port_;
  const std::string folder_;
  std::array<Rate, kCounterCount> rates_;
};

// Adapters appear when their driver is loaded, or a virtual one is made.
class InfinibandFinder final : public SensorFinder {
 public:
  // A machine has up to some ten; with virtual functions it may show hundreds, which must not take the
  // places of its GPUs (SensorSet::kWatchedCountMax).
  static constexpr std::size_t kPortCountMax = 24;

  explicit InfinibandFinder(KernelText kernel)
      : SensorFinder("network"), kernel_(std::move(kernel)) {}
  Findings Find() override;

 private:
  const KernelText kernel_;
  std::set<std::string> known_;
};

}  // namespace stepwell::agent
