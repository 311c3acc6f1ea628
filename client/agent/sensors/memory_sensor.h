// MemorySensor: the machine's memory from /proc/meminfo. Confined to one thread.
#pragma once

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class MemorySensor final : public Sensor {
 public:
  explicit MemorySensor(KernelText kernel)
      : Sensor({"memory", "memory", Cadence::kFast}), kernel_(std::move(kernel)) {}
  void Read(Reading& reading) override;

 private:
  const KernelText kernel_;
};

}  // namespace stepwell::agent
