// PressureSensor: the share of time in which tasks waited for processors, memory or disks, from
// /proc/pressure. Rates of its running totals, not its averages, which lag. Confined to one thread.
#pragma once

#include "client/agent/sensors/kernel_text.h"
#include "client/agent/sensors/rate.h"
#include "client/agent/sensors/sensor.h"

namespace stepwell::agent {

class PressureSensor final : public Sensor {
 public:
  enum class Of { kCpu, kMemory, kDisk };
  PressureSensor(Of of, KernelText kernel);
  void Read(Reading& reading) override;
  void Forget() override;

 private:
  absl::Status Add(Reading& reading, const std::string& text, absl::string_view line,
                   const SystemMetric& metric, Rate& rate) const;

  const KernelText kernel_;
  const char* const path_;
  const SystemMetric& some_;
  // Null for processors: the machine as a whole cannot lack them all.
  const SystemMetric* const full_;
  Rate some_rate_;
  Rate full_rate_;
};

}  // namespace stepwell::agent
