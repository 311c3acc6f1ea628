// ContainerSensor: what the agent's own container uses and may use, under names of its own, so that
// nobody takes it for the machine. Outside a container it has nothing to say. Confined to one thread.
#pragma once

#include "client/agent/sensors/cgroup_reader.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class ContainerCpuSensor final : public Sensor {
 public:
  explicit ContainerCpuSensor(KernelText kernel)
      : Sensor({"container cpu", "cpu", Cadence::kFast}), reader_(std::move(kernel)) {}
  void Read(Reading& reading) override;
  void Forget() override;

 private:
  CgroupReader reader_;
  Rate usage_us_;
  Rate periods_;
  Rate throttled_;
};

class ContainerMemorySensor final : public Sensor {
 public:
  explicit ContainerMemorySensor(KernelText kernel)
      : Sensor({"container memory", "memory", Cadence::kFast}), reader_(std::move(kernel)) {}
  void Read(Reading& reading) override;

 private:
  CgroupReader reader_;
};

}  // namespace stepwell::agent
