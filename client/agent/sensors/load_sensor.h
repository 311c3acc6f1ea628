// LoadSensor: how many tasks run or wait, from /proc/loadavg. The kernel counts them anew each 5 s,
// so that is its cadence. Confined to one thread.
#pragma once

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class LoadSensor final : public Sensor {
 public:
  static constexpr Cadence kCadence{5'000};

  explicit LoadSensor(KernelText kernel)
      : Sensor({"load", "cpu", kCadence}), kernel_(std::move(kernel)) {}
  void Read(Reading& reading) override;

 private:
  const KernelText kernel_;
};

}  // namespace stepwell::agent
